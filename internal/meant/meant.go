package meant

import "strings"

// Word is the one of words that given was meant to be, "" where it is near none.
func Word(given string, words []string) string {
	s := NewSearch(given)
	for _, w := range words {
		s.Add(w)
	}
	return s.Word()
}

// Hint is the end of an error about a word that is none of words: "; did you mean WORD?", or "" where
// given is near none of them.
func Hint(given string, words []string) string {
	s := NewSearch(given)
	for _, w := range words {
		s.Add(w)
	}
	return s.Hint()
}

// A Search finds the word that was meant among words that come one after the other.
type Search struct {
	given string
	// near is the nearest word so far, and least the number of letters in which it differs.
	near  string
	least int
	// longer is the number of words that begin with the given one, and firstLonger is the first of
	// them.
	longer      int
	firstLonger string
	rows        [3][]int
}

// NewSearch returns a search for the word that given was meant to be.
func NewSearch(given string) *Search {
	given = strings.ToLower(given)
	return &Search{given: given, least: len(given)}
}

// Add compares a word.
func (s *Search) Add(word string) {
	lower := strings.ToLower(word)
	most := min(max(max(len(s.given), len(lower))/3, 1), s.least-1)
	if d := s.distance(lower, most); d <= most && sameDigits(s.given, lower) {
		s.near, s.least = word, d
	}
	if len(s.given) > 1 && strings.HasPrefix(lower, s.given) {
		if s.longer++; s.longer == 1 {
			s.firstLonger = word
		}
	}
}

// Word is the word that was meant, "" if none of those that were added is near.
func (s *Search) Word() string {
	if s.near == "" && s.longer == 1 {
		return s.firstLonger
	}
	return s.near
}

// Hint is [Hint] for the words that were added.
func (s *Search) Hint() string {
	if w := s.Word(); w != "" {
		return "; did you mean " + w + "?"
	}
	return ""
}

// sameDigits reports whether two words have the same digits in the same order.
func sameDigits(a, b string) bool {
	for {
		i, j := strings.IndexAny(a, digits), strings.IndexAny(b, digits)
		if i < 0 || j < 0 {
			return i == j
		}
		if a[i] != b[j] {
			return false
		}
		a, b = a[i+1:], b[j+1:]
	}
}

const digits = "0123456789"

// distance returns the number of letters in which word differs from the given one, or more than
// most.
func (s *Search) distance(word string, most int) int {
	a, b := s.given, word
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	for i := range s.rows {
		if len(s.rows[i]) <= len(b) {
			s.rows[i] = make([]int, len(b)+1)
		}
	}
	before, last, row := s.rows[0][:len(b)+1], s.rows[1][:len(b)+1], s.rows[2][:len(b)+1]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			d := last[j]
			if a[i] != b[j] {
				d++
			}
			d = min(d, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				d = min(d, before[j-1]+1)
			}
			row[j+1] = d
			least = min(least, d)
		}
		if least > most { // no further row has less
			return least
		}
	}
	return row[len(b)]
}
