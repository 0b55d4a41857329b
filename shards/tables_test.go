package shards

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"ndls/internal/storage/storagetest"
)

var tableSizes = []int64{0, 1, 2, 63, batchRows - 1, batchRows, batchRows + 1, tableGroupRows, tableGroupRows + 5}

// The writer is not watched for leaks: the library forgets a buffer of 256 bytes
// for each column, which the garbage collector takes.
func TestNodesRoundTrip(t *testing.T) {
	for _, n := range tableSizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var out bytes.Buffer
			var want NodeBatch
			err := WriteNodes(&out, 0, n, IDs{}, 0, 2, func(first int64, b NodeBatch) error {
				if first != int64(len(want.ID)) || len(b.ID) > batchRows {
					t.Fatalf("batch of %d at %d after %d", len(b.ID), first, len(want.ID))
				}
				err := fillNodes(first, b)
				appendNodes(&want, b)
				return err
			})
			if err != nil || int64(len(want.ID)) != n {
				t.Fatalf("%d nodes asked for, %v", len(want.ID), err)
			}
			checkAllocations(t)
			got, err := readAllNodes(storagetest.NewBytesReader(out.Bytes()))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%d nodes come back, %v", len(got.ID), err)
			}
		})
	}
}

func TestLSIRoundTrip(t *testing.T) {
	for _, n := range tableSizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			var out bytes.Buffer
			if err := WriteLSI(&out, n, nil, 2, fillLSI); err != nil {
				t.Fatal(err)
			}
			checkAllocations(t)
			got, err := readAllLSI(storagetest.NewBytesReader(out.Bytes()))
			if err != nil || int64(len(got.ID)) != n {
				t.Fatalf("%d rows come back, %v", len(got.ID), err)
			}
			want := newLSIBatch(int(n))
			if err := fillLSI(0, want); err != nil {
				t.Fatal(err)
			}
			if n > 0 && !reflect.DeepEqual(got, want) {
				t.Error("other values come back")
			}
		})
	}
}

func TestTablesPassOnErrorsOfTheCaller(t *testing.T) {
	mine := errors.New("mine")
	if err := WriteNodes(&bytes.Buffer{}, 0, 10, IDs{}, 0, 2, func(int64, NodeBatch) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("WriteNodes: %v", err)
	}
	if err := WriteLSI(&bytes.Buffer{}, 10, nil, 2, func(int64, LSIBatch) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("WriteLSI: %v", err)
	}
	if err := ReadNodes(storagetest.NewBytesReader(sampleNodes(t)), "n", Readers{}, func(int64, NodeBatch) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("ReadNodes: %v", err)
	}
	if err := ReadLSI(storagetest.NewBytesReader(sampleLSI(t)), "l", Readers{}, func(int64, LSIBatch) error { return mine }); !errors.Is(err, mine) {
		t.Errorf("ReadLSI: %v", err)
	}
}

func TestWriteNodesRefusesUnknownSplit(t *testing.T) {
	err := WriteNodes(&bytes.Buffer{}, 0, 3, IDs{}, 0, 2, func(_ int64, b NodeBatch) error {
		b.Split[2] = 4
		return nil
	})
	if err == nil {
		t.Error("split 4 is written")
	}
}

// Columns that are not wanted are left out, and the others do not change.
func TestReadNodePart(t *testing.T) {
	table := sampleNodes(t)
	read := func(want NodeColumns) (all NodeBatch) {
		if err := ReadNodePart(storagetest.NewBytesReader(table), "n", 0, want, Readers{}, func(_ int64, b NodeBatch) error {
			all.ID, all.Degree, all.Component = append(all.ID, b.ID...), append(all.Degree, b.Degree...), append(all.Component, b.Component...)
			all.Label, all.Split = append(all.Label, b.Label...), append(all.Split, b.Split...)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return all
	}
	all := read(AllNodeColumns)
	if got := read(NodeID | NodeLabel); !slices.Equal(got.ID, all.ID) || !slices.Equal(got.Label, all.Label) {
		t.Error("ids or labels differ from those that are read with all columns")
	} else if len(got.Degree)+len(got.Component)+len(got.Split) > 0 {
		t.Error("other columns were read, too")
	}
	got := read(NodeDegree | NodeComponent | NodeSplit)
	if !slices.Equal(got.Degree, all.Degree) || !slices.Equal(got.Component, all.Component) || !slices.Equal(got.Split, all.Split) {
		t.Error("degrees, components or splits differ from those that are read with all columns")
	}
}
