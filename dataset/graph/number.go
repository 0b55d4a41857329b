package graph

import (
	"errors"
	"strconv"
)

// numberByte marks the bytes of a number as users of CSV write it.
var numberByte = func() (is [256]bool) {
	for _, c := range []byte("0123456789+-.eE") {
		is[c] = true
	}
	return is
}()

// Number reads a decimal number with or without sign, fraction and exponent: 1, +1, .5, 5., 1e3. It takes no other
// form that Go has for numbers, such as 1_000, 0x1p4 and Infinity. bits is 32 or 64. A number that is too large is
// infinite.
func Number(text []byte, bits int) (v float64, ok bool) {
	for _, c := range text {
		if !numberByte[c] {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(string(text), bits)
	if err != nil {
		return v, errors.Is(err, strconv.ErrRange)
	}
	return v, true
}

// missing are the words that programs write for a missing value: those of pandas, and \N of databases. Blanks are none.
var missing = map[string]bool{
	"NA": true, "N/A": true, "n/a": true, "#N/A": true, "#NA": true, "#N/A N/A": true, "<NA>": true, "NaN": true, "nan": true,
	"-NaN": true, "-nan": true,
	"NAN": true, "1.#IND": true, "-1.#IND": true, "1.#QNAN": true, "-1.#QNAN": true, "NULL": true, "Null": true, "null": true,
	"None": true, "NaT": true, `\N`: true,
}

// IsMissing reports whether programs write a word for a missing value.
func IsMissing(word string) bool { return missing[word] }

// MissingWords are the words of [IsMissing].
func MissingWords() (words []string) {
	for word := range missing {
		words = append(words, word)
	}
	return words
}
