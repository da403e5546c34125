/*
 * fuzz_text.h - how bytes become a text, for fuzz targets over texts.
 */

#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

#include <stdlib.h>
#include <string.h>

#define FUZZ_MAX_BYTES 400
#include "fuzz.h"

/* The text of some bytes: the bytes themselves if the first is 0; otherwise a fragment for each, rarely the byte itself. It ends
   at a NUL byte. In memory of exactly its size, to be freed. */
static char* fuzz_text(const uint8_t* data, size_t size, const char* const* fragments, size_t num_fragments) {
    size_t max_fragment = 1, length = 0, i;
    char* text;
    char* exact;
    for (i = 0; i < num_fragments; ++i) {
        const size_t fragment = strlen(fragments[i]);
        max_fragment = fragment > max_fragment ? fragment : max_fragment;
    }
    text = (char*)malloc(size * max_fragment + 1);
    REQUIRE(text != NULL);
    for (i = 1; i < size; ++i) {
        if (data[0] == 0 || data[i] >= 250) {
            text[length++] = (char)data[i];
        } else {
            const char* fragment = fragments[data[i] % num_fragments];
            memcpy(text + length, fragment, strlen(fragment));
            length += strlen(fragment);
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
