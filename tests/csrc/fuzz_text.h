/*
 * fuzz_text.h - how bytes become a text, for fuzz targets over texts.
 */

#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/* The text of some bytes: the bytes themselves if the first is 0; otherwise a fragment for each, rarely the byte itself. It ends
   at a NUL byte. In memory of exactly its size, to be freed. Fragments are separated by `|`. */
static char* fuzz_text(const uint8_t* data, size_t size, const char* fragments) {
    size_t num_fragments = 1, length = 0, i;
    char* exact;
    char* text = (char*)malloc(size * strlen(fragments) + 1);
    for (i = 0; fragments[i] != '\0'; ++i) num_fragments += fragments[i] == '|';
    REQUIRE(text != NULL);
    for (i = 1; i < size; ++i) {
        if (data[0] == 0 || data[i] >= 250) {
            text[length++] = (char)data[i];
        } else {
            const char* fragment = fragments;
            size_t number = data[i] % num_fragments;
            for (; number > 0; ++fragment) number -= *fragment == '|';
            memcpy(text + length, fragment, strcspn(fragment, "|"));
            length += strcspn(fragment, "|");
        }
    }
    text[length] = '\0';
    length = strlen(text);
    exact = (char*)malloc(length + 1);
    REQUIRE(exact != NULL);
    memcpy(exact, text, length + 1);
    free(text);
    return exact;
}

#endif /* FUZZ_TEXT_H */
