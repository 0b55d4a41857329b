package testgraph

import (
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"
)

// TestOracleGivesPublishedDistances holds the oracle itself against distances
// that were computed elsewhere.
func TestOracleGivesPublishedDistances(t *testing.T) {
	raw, err := os.ReadFile(Published(t, "golden/karate_lsi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Nodes int
		Edges [][2]int
		Cases []struct {
			R          float64
			Stationary string
			At         map[string][]float64 `json:"distance_at_k"`
			Nodes      []int                `json:"distance_nodes"`
		}
	}
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	g := New("karate", golden.Nodes, golden.Edges)
	checked := 0
	for _, c := range golden.Cases {
		o := NewOracle(g, c.R, c.Stationary == "component")
		d := o.Distances(o.Identity(), golden.Nodes, 10)
		for at, want := range c.At {
			k, err := strconv.Atoi(at)
			if err != nil {
				t.Fatal(err)
			}
			for i, node := range c.Nodes {
				checked++
				if math.Abs(d[k][node]-want[i]) > 1e-10 {
					t.Errorf("r=%g %s: D_%d(%d) = %.12f, published %.12f", c.R, c.Stationary, k, node, d[k][node], want[i])
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d distances were compared", checked)
	}
}
