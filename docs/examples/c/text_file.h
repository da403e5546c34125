/*
 * text_file.h - shared by examples that read and write files. A failure ends the program.
 */

#ifndef TEXT_FILE_H
#define TEXT_FILE_H

#include <stdio.h>
#include <stdlib.h>

/* Ends the program with a message that names the file. */
static inline void fail(const char* path) {
    perror(path);
    exit(EXIT_FAILURE);
}

/* Memory for a text, which the caller frees. */
static inline char* allocate(size_t size) {
    char* text = (char*)malloc(size);
    if (text == NULL) fail("malloc");
    return text;
}

/* A file's text, which the caller frees. */
static inline char* read_text(const char* path) {
    FILE* file = fopen(path, "r");
    char* text = NULL;
    size_t length = 0;
    size_t num_read;

    if (file == NULL) fail(path);
    do {
        text = (char*)realloc(text, length + BUFSIZ + 1);
        if (text == NULL) fail(path);
        num_read = fread(text + length, 1, BUFSIZ, file);
        length += num_read;
    } while (num_read > 0);
    if (ferror(file)) fail(path);
    (void)fclose(file);
    text[length] = '\0';
    return text;
}

/* Writes a text. */
static inline void write_text(const char* path, const char* text) {
    FILE* file = fopen(path, "w");
    if (file == NULL || fputs(text, file) == EOF || fclose(file) != 0) fail(path);
}

#endif /* TEXT_FILE_H */
