// Package meant finds the word that a misspelt one was meant to be, for the ends of errors.
//
// # Model
//
// Of the known words, the one that differs from the given word in the fewest letters was meant, if
// these are a third of the longer word or less, at least one, and not the whole given word. A
// letter more, a letter less, another letter, and two neighbours that are exchanged count as one
// each (the distance of optimal string alignment: no letter is changed twice). Upper and lower case
// are the same. Digits are no misspelling: x8 is not near x7. Where no word is near, it is the only
// one that begins with the given word, if there is one.
//
// Letters are bytes: ü for u is two.
//
// # Memory
//
// Three rows of numbers, as long as the longest word that was compared.
//
// # Determinism
//
// Of words that are equally near the first one is taken.
package meant
