package main

import (
	"strings"
	"testing"
)

// TestList: each entry of the list fits the source files.
func TestList(t *testing.T) {
	root, err := findRoot()
	if err == nil {
		err = check(root, mutants)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(mutants) < 60 {
		t.Errorf("%d mutations", len(mutants))
	}
	if err := check(root, []mutant{
		{file: "go.mod", from: "there is no such text"},
		{file: "bench/mutants/main.go", what: "an operator", from: "switch {\n\t\tcase by", to: "switch {{", tests: []string{"bench/mutants TestNone"}},
	}); err == nil || strings.Count(err.Error(), "\n") != 3 {
		t.Errorf("a wrong list: %v", err)
	}
}

func TestOutcome(t *testing.T) {
	for _, c := range []struct{ events, by, err string }{
		{`{"Action":"run","Package":"ndls/a","Test":"TestX"}{"Action":"pass","Package":"ndls/a","Test":"TestX"}{"Action":"pass","Package":"ndls/a"}`, "", ""},
		{`{"Action":"run","Test":"TestX"}{"Action":"fail","Package":"ndls/a","Test":"TestX/one"}{"Action":"fail","Package":"ndls/a","Test":"TestX"}{"Action":"fail","Package":"ndls/a"}`, "a TestX/one", ""},
		{`{"Action":"run","Test":"TestX"}{"Action":"output","Output":"panic: test timed out after 1s\n"}{"Action":"fail","Package":"ndls/a","Test":"TestX"}`, "a TestX (timeout)", ""},
		{`{"Action":"output","Output":"fatal error: stack overflow\n"}{"Action":"fail","Package":"ndls/a"}`, "a (panic)", ""},
		{`{"Action":"build-output","Output":"x.go:1: wrong\n"}{"Action":"build-fail"}`, "", "it is not built:\nx.go:1: wrong\n"},
		{`{"Action":"pass","Package":"ndls/a"}`, "", "no test ran"},
	} {
		by, err := outcome([]byte(c.events))
		if err == nil && c.err != "" || err != nil && err.Error() != c.err || by != c.by {
			t.Errorf("%s: %q, %v", c.events, by, err)
		}
	}
}
