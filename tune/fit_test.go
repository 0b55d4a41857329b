package tune

import "testing"

// TestSpaceFitsLengths: learning rates of the default space are divided by the length of rows above 1; those of others stay.
func TestSpaceFitsLengths(t *testing.T) {
	for length, want := range map[float64]string{0: "lr=log:0.003:0.2", 0.2: "lr=log:0.003:0.2", 1: "lr=log:0.003:0.2", 10: "lr=log:0.0003:0.02", 31.7: "lr=log:9.5e-05:0.0063"} {
		for _, d := range Default().fit(length) {
			if d.Name == "lr" && d.String() != want {
				t.Errorf("rows of length %v: %s, want %s", length, d, want)
			}
		}
	}
	own, err := ParseSpace("lr=log:0.001:0.1")
	if err != nil {
		t.Fatal(err)
	}
	if got := own.fit(10)[0].String(); got != "lr=log:0.001:0.1" {
		t.Errorf("a range that was given became %s", got)
	}
}
