/*
 * row_threads.h - threads that do rows together, block by block: each first those of its own share, which are in its core's cache if
 * the call before was for the same rows, and then what others have left.
 *
 * Private to evo.native.row_threads. One thread at a time may call `evo__rows_do`, and takes part itself. Between two calls the others
 * look for work for a while before they sleep, since to wake a thread takes as long as a hundred programs. In the child of a fork
 * there are no others, and the caller does it all.
 */

#ifndef EVO_ROW_THREADS_H
#define EVO_ROW_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EVO__SPIN_NS 100000 /* as long as it takes to sleep and be woken */

/* The work on rows from `first` up to `end`. member: of the thread, 0 that of the caller. */
typedef void (*EvoRowsFunction)(void* context, size_t member, size_t first, size_t end);

struct EvoRows;

/* A thread, with a share of the rows. next: the row of it that nobody has taken. */
typedef struct EvoRowsMember {
    struct EvoRows* rows;
    size_t number;
    pthread_t thread;
    size_t next, end;
    char padding[64]; /* a cache line between two counters */
} EvoRowsMember;

typedef struct EvoRows {
    pthread_mutex_t mutex;
    pthread_cond_t posted, ended;
    EvoRowsFunction function;
    void* context;
    EvoRowsMember* members;
    size_t block, num_shares;
    size_t num_busy;                  /* others that take part */
    size_t num_calls, num_members;    /* calls so far; threads with the caller */
    pid_t process;                    /* that has the threads */
    bool is_open, is_over, is_called; /* others may join; all end; somebody calls */
} EvoRows;

static inline bool evo__rows_waits(size_t* number, size_t value) {
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        for (int i = 0; i < 64; i++) {
            if (__atomic_load_n(number, __ATOMIC_ACQUIRE) != value) return false;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000000000LL + now.tv_nsec - begin.tv_nsec < EVO__SPIN_NS);
    return true;
}

static void evo__rows_take(EvoRows* rows, size_t member) {
    for (size_t i = 0; i < rows->num_shares; i++) {
        EvoRowsMember* share = &rows->members[(member + i) % rows->num_shares];
        size_t first;
        while ((first = __atomic_fetch_add(&share->next, rows->block, __ATOMIC_RELAXED)) < share->end) {
            const size_t left = share->end - first;
            rows->function(rows->context, member, first, first + (left < rows->block ? left : rows->block));
        }
    }
}

static void* evo__rows_serve(void* argument) {
    EvoRowsMember* member = (EvoRowsMember*)argument;
    EvoRows* rows = member->rows;
    size_t seen = 0;
    for (;;) {
        evo__rows_waits(&rows->num_calls, seen);
        pthread_mutex_lock(&rows->mutex);
        while (rows->num_calls == seen && !rows->is_over) pthread_cond_wait(&rows->posted, &rows->mutex);
        seen = rows->num_calls;
        const bool is_over = rows->is_over, is_taking_part = rows->is_open && member->number < rows->num_shares;
        rows->num_busy += is_taking_part;
        pthread_mutex_unlock(&rows->mutex);
        if (is_over) return NULL;
        if (!is_taking_part) continue;
        evo__rows_take(rows, member->number);
        pthread_mutex_lock(&rows->mutex);
        __atomic_store_n(&rows->num_busy, rows->num_busy - 1, __ATOMIC_RELEASE);
        if (rows->num_busy == 0) pthread_cond_signal(&rows->ended);
        pthread_mutex_unlock(&rows->mutex);
    }
}

/* Rows with zeroed members. Threads that the system refuses are missing: the others do their work. */
static void evo__rows_init(EvoRows* rows, EvoRowsMember* members, size_t num_members) {
    sigset_t all, before;
    memset(rows, 0, sizeof *rows);
    rows->process = getpid();
    rows->members = members;
    pthread_mutex_init(&rows->mutex, NULL);
    pthread_cond_init(&rows->posted, NULL);
    pthread_cond_init(&rows->ended, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
    for (rows->num_members = 1; rows->num_members < num_members; rows->num_members++) {
        EvoRowsMember* member = &members[rows->num_members];
        member->rows = rows;
        member->number = rows->num_members;
        if (pthread_create(&member->thread, NULL, evo__rows_serve, member) != 0) break;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Ends the threads; not during a call. */
static void evo__rows_end(EvoRows* rows) {
    if (rows->process != getpid()) return;
    pthread_mutex_lock(&rows->mutex);
    rows->is_over = true;
    __atomic_store_n(&rows->num_calls, rows->num_calls + 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&rows->posted);
    pthread_mutex_unlock(&rows->mutex);
    for (size_t i = 1; i < rows->num_members; i++) pthread_join(rows->members[i].thread, NULL);
}

/* Has the function do all rows, in blocks. Where somebody calls already, the caller does them alone, as a member of its own call. */
static void evo__rows_do(EvoRows* rows, EvoRowsFunction function, void* context, size_t num_rows, size_t block) {
    bool is_shared = rows->num_members > 1 && num_rows / block > 1 && rows->process == getpid();
    if (is_shared) is_shared = !__atomic_exchange_n(&rows->is_called, true, __ATOMIC_ACQUIRE);
    if (!is_shared) {
        if (num_rows > 0) function(context, 0, 0, num_rows);
        return;
    }
    pthread_mutex_lock(&rows->mutex);
    rows->function = function;
    rows->context = context;
    rows->block = block;
    rows->num_shares = num_rows / block < rows->num_members ? num_rows / block : rows->num_members;
    for (size_t i = 0; i < rows->num_shares; i++) {
        rows->members[i].next = num_rows * i / rows->num_shares;
        rows->members[i].end = num_rows * (i + 1) / rows->num_shares;
    }
    rows->is_open = true;
    __atomic_store_n(&rows->num_calls, rows->num_calls + 1, __ATOMIC_RELEASE);
    pthread_cond_broadcast(&rows->posted);
    pthread_mutex_unlock(&rows->mutex);
    evo__rows_take(rows, 0);
    pthread_mutex_lock(&rows->mutex);
    rows->is_open = false;
    pthread_mutex_unlock(&rows->mutex);
    for (size_t busy; (busy = __atomic_load_n(&rows->num_busy, __ATOMIC_ACQUIRE)) != 0;) {
        if (!evo__rows_waits(&rows->num_busy, busy)) continue;
        pthread_mutex_lock(&rows->mutex);
        if (rows->num_busy != 0) pthread_cond_wait(&rows->ended, &rows->mutex);
        pthread_mutex_unlock(&rows->mutex);
    }
    __atomic_store_n(&rows->is_called, false, __ATOMIC_RELEASE);
}

#endif /* EVO_ROW_THREADS_H */
