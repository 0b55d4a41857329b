package parquet

import (
	"errors"
	"slices"
	"strings"

	"ndls/dataset/columnar"
)

// node is a field of the schema with the fields in it.
type node struct {
	*element
	children []*node
	leaf     int // the number of the column that holds it, -1 of a group
	// The largest levels of definition and repetition, and the level of definition from which
	// on the innermost list has an element.
	definition, repetition, present int
}

var errSchema = errors.New("its schema is damaged")

// tree builds the schema. It returns the root and the leaves, in order of their columns.
func tree(elements []element) (root *node, leaves []*node, err error) {
	at := 0
	var build func(parent *node, depth int) *node
	build = func(parent *node, depth int) *node {
		if at >= len(elements) || depth > maxDepth {
			err = errSchema
			return nil
		}
		n := &node{element: &elements[at], leaf: -1}
		at++
		if parent != nil {
			n.definition, n.repetition, n.present = parent.definition, parent.repetition, parent.present
			switch n.element.repetition {
			case required:
			case optional:
				n.definition++
			case repeated:
				n.definition++
				n.repetition++
				n.present = n.definition
			default:
				err = errSchema
			}
			if n.physical >= 0 {
				if n.physical >= numPhysical || n.element.children > 0 || n.physical == fixedArrays && (n.length <= 0 || n.length > maxPage) {
					err = errSchema
				}
				n.leaf = len(leaves)
				leaves = append(leaves, n)
				return n
			}
		}
		for range n.element.children {
			if err != nil {
				break
			}
			if child := build(n, depth+1); child != nil {
				n.children = append(n.children, child)
			}
		}
		return n
	}
	if root = build(nil, 0); err == nil && at != len(elements) {
		err = errSchema
	}
	return root, leaves, err
}

// field is a column that users see: a value or list of a leaf, or a vector of several.
type field struct {
	columnar.Column
	leaves []*node
}

// fields lists the columns: those of the schema first, and then those inside of structs.
func (n *node) fields() (all []field) {
	var inside []field
	var add func(c *node, path []string)
	add = func(c *node, path []string) {
		path = append(path[:len(path):len(path)], c.name)
		f := field{Column: columnar.Column{Name: strings.Join(path, "."), Nested: len(path) > 1}}
		f.Type, f.leaves = c.column()
		if f.Nested {
			inside = append(inside, f)
		} else {
			all = append(all, f)
		}
		if f.Type.Name == "struct" && c.element.repetition != repeated {
			for _, child := range c.children {
				add(child, path)
			}
		}
	}
	for _, c := range n.children {
		add(c, nil)
	}
	return append(all, inside...)
}

// column is the type of a column, and the leaves that hold it, if it is read.
func (n *node) column() (columnar.Type, []*node) {
	if n.leaf >= 0 {
		t := n.primitive()
		if n.element.repetition == repeated {
			t = columnar.ListOf(t, 0)
		}
		return t, []*node{n}
	}
	if n.element.repetition == repeated {
		return columnar.Type{Name: "list<struct>"}, nil
	}
	switch n.annotation() {
	case logicalMap:
		return columnar.Type{Name: "map"}, nil
	case logicalVariant:
		return columnar.Type{Name: "variant"}, nil
	case logicalList:
		return n.list()
	}
	if leaves := n.vector(); leaves != nil {
		return columnar.Type{Kind: columnar.Vector, Name: "vector"}, leaves
	}
	return columnar.Type{Name: "struct"}, nil
}

// list is the type of a group that is a list: of a repeated field, or of the one field of a
// repeated group.
func (n *node) list() (columnar.Type, []*node) {
	if len(n.children) != 1 || n.children[0].element.repetition != repeated {
		return columnar.Type{Name: "list"}, nil
	}
	inner := n.children[0]
	isElement := inner.leaf >= 0 || len(inner.children) != 1 || inner.name == "array" || inner.name == n.name+"_tuple"
	if !isElement {
		inner = inner.children[0]
	}
	if inner.leaf < 0 || inner.repetition != n.repetition+1 {
		t, _ := inner.column()
		return columnar.Type{Name: "list<" + t.Name + ">"}, nil
	}
	if n.repetition > 0 {
		return columnar.Type{Name: "list<list>"}, nil
	}
	return columnar.ListOf(inner.primitive(), 0), []*node{inner}
}

// vector returns the leaves of a vector of Spark ML: its type, size, indices and values.
func (n *node) vector() (leaves []*node) {
	if len(n.children) != len(columnar.VectorParts) {
		return nil
	}
	for i, name := range columnar.VectorParts {
		c := n.children[i]
		t, held := c.column()
		isList := t.Kind == columnar.List
		if c.name != name || len(held) != 1 || isList != (i >= columnar.VectorIndices) || !isList && t.Kind != columnar.Int {
			return nil
		}
		want := [][]int{{int32s}, {int32s}, {int32s}, {doubles, floats}}[i]
		if !slices.Contains(want, held[0].physical) {
			return nil
		}
		leaves = append(leaves, held[0])
	}
	return leaves
}
