package dataset

import (
	"io"
	"slices"
	"strings"
	"testing"
)

// graphLand is a folder of GraphLand with four nodes; index is the name of the column of node ids.
func graphLand(task, index, targets string) map[string][]byte {
	return map[string][]byte{
		"set/info.yaml": []byte("dataset_name: set\ntask: " + task + "\nmetric: R2\nnumerical_features_names:\n- num\n- frac\n" +
			"fraction_features_names: [frac]\ncategorical_features_names:\n- cat\ntarget_name: target\ngraph_is_directed: false\n"),
		"set/features.csv":       []byte(index + ",cat,num,frac\n0,1,2.5,0.5\n1,10,,0.25\n2,2,3,0\n3,1,1,1\n"),
		"set/targets.csv":        []byte(index + ",target\n" + targets),
		"set/split_masks_RL.csv": []byte(index + ",train,val,test\n0,True,False,False\n1,False,True,False\n2,False,False,True\n3,False,False,False\n"),
		"set/edgelist.csv":       []byte("source,target\n0,1\n1,2\n2,3\n"),
	}
}

// TestGraphLand reads a folder, whose nodes may have a column of ids without name.
func TestGraphLand(t *testing.T) {
	for index, c := range map[string]struct {
		task, targets string
		answers       Answers
		splits        []Split // of nodes with a label
	}{
		"node_id": {"regression", "0,1.5\n1,\n2,7\n3,2\n", Numbers, []Split{Train, Test}},
		"":        {"binary_classification", "0,1.0\n1,0.0\n2,\n3,1.0\n", Labels, []Split{Train, Valid}},
		"id":      {"multiclass_classification", "0,1\n1,0\n2,2\n3,\n", Classes, []Split{Train, Valid, Test}},
	} {
		t.Run(c.task, func(t *testing.T) {
			uri := "graphland:" + writeTree(t, graphLand(c.task, index, c.targets)) + "/set"
			task, err := TaskOf(t.Context(), uri)
			if err != nil || task != c.answers {
				t.Errorf("task %d, %v", task, err)
			}
			ds, err := Open(t.Context(), uri, Options{Answers: task, Missing: true})
			if err != nil {
				t.Fatal(err)
			}
			defer ds.Close()
			info := ds.Info()
			if info.Identity != "graphland:set?split=RL" || !IsKeyed(info.Identity) || !HasCategories(info.Identity) || info.NumFeatures != 2 ||
				!slices.Equal(info.Categories, []string{"cat"}) || !slices.Equal(info.Plain, []int{1}) || !info.HasLabels || !info.HasSplits {
				t.Errorf("%+v", info)
			}
			ds.(Keyed).Number(4, func(key []byte) (uint32, bool) { return uint32(key[len(key)-1]) & 3, true })
			rows, err := ds.Features(t.Context(), Whole)
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close()
			for _, want := range []string{"1", "10", "2", "1"} {
				row, err := rows.Next()
				if err != nil || string(row.Categories[0]) != want || row.ID == 1 && row.Dense[0] == row.Dense[0] {
					t.Errorf("%+v, %v", row, err)
				}
			}
			splits, err := ds.Splits(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer splits.Close()
			var got []Split
			for {
				_, split, err := splits.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, split)
			}
			if !slices.Equal(got, c.splits) {
				t.Errorf("splits %v, not %v", got, c.splits)
			}
			if inputs, err := Files(ds); err != nil || len(inputs) != 5 {
				t.Errorf("inputs %v, %v", inputs, err)
			}
		})
	}
	good := graphLand("regression", "node_id", "0,1\n1,2\n2,3\n3,4\n")
	good["set/info.yaml"] = []byte("task: regression\n")
	dir := writeTree(t, good)
	for uri, want := range map[string]string{
		"graphland:" + dir:                     "has no info.yaml",
		"graphland:" + dir + "/set":            "names no target_name",
		"graphland:" + dir + "/set?split=RANK": "info.yaml",
	} {
		if _, err := Open(t.Context(), uri, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
