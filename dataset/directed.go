package dataset

import (
	"regexp"
	"strings"

	"ndls/dataset/graph"
)

// directedKey finds the key of a URI that reports whether edges have directions.
var directedKey = regexp.MustCompile(`[?&,]directed=([^?&,]*)`)

// IsDirected reports whether edges of the dataset of an identity have directions.
func IsDirected(identity string) bool {
	found := directedKey.FindStringSubmatch(identity)
	return found != nil && found[1] == "true"
}

// cutDirected takes the key directed= from what follows the colon of a URI. key is its text where
// it says true, with the sign in front of it.
func cutDirected(rest string) (left, key string, err error) {
	at := directedKey.FindStringSubmatchIndex(rest)
	if at == nil {
		return rest, "", nil
	}
	key, value := rest[at[0]:at[1]], rest[at[2]:at[3]]
	is, err := graph.ParseBool("directed", value)
	if err != nil {
		return "", "", err
	}
	behind := rest[at[1]:]
	if key[0] == '?' && strings.HasPrefix(behind, "&") {
		behind = "?" + behind[1:]
	}
	if !is {
		key = ""
	}
	return rest[:at[0]] + behind, key, nil
}
