"""The message of a process that crashes, whoever's code it is in: one line on stderr, behind Python's own trace.

Owns the handlers of signals such as SIGSEGV, which call whatever handled them before. Knows nothing of runs.
"""

cdef extern from *:
    """
    #include <signal.h>
    #include <string.h>
    #include <unistd.h>

    static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
    enum { NUM_CRASHES = sizeof crashes / sizeof crashes[0] };
    static struct sigaction before[NUM_CRASHES];
    static char line[4096];
    static pid_t process;  /* children that a task forks have nothing to say */

    /* Calls only what may be called in a signal's handler. */
    static void say(int number) {
        if (getpid() == process && write(2, line, strlen(line)) < 0) { line[0] = 0; }
        for (int i = 0; i < NUM_CRASHES; i++)
            if (crashes[i] == number) { sigaction(number, &before[i], NULL); }
        raise(number);
    }

    static void set_line(const char* text) {
        strncpy(line, text, sizeof line - 1);
        if (process == 0) {
            struct sigaction action = { .sa_handler = say, .sa_flags = SA_NODEFER | SA_ONSTACK };
            for (int i = 0; i < NUM_CRASHES; i++) { sigaction(crashes[i], &action, &before[i]); }
        }
        process = getpid();
    }
    """
    void set_line(const char* text)


def on_crash(line: str) -> None:
    """Has a crash of this process from now on say a line, or none if it is empty. A faulthandler that is enabled later writes its
    trace before it.
    """
    text = f"{line}\n".encode() if line else b""
    set_line(text)
