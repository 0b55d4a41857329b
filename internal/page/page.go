// Package page fills templates of HTML pages.
//
// Templates have the syntax of text/template, whose parser reads them. They are filled by this package, since
// text/template and html/template find methods by names that the linker does not know: a program with them keeps all
// exported methods of all its types. Here methods are given to [New], beside functions.
//
// Templates may have what the pages of this program use: actions with one command, if, with, range, template,
// variables, fields, and the functions and, or, not, eq, ne, len, index and printf.
//
// Values are escaped for text and for attributes in quotes, as html/template does there. They must not stand in other
// places, such as scripts and names of attributes, unless they are [Raw]; a test of each page compares its bytes with
// those of html/template.
package page

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"sync"
	"text/template/parse"
)

// Raw is text that is not escaped.
type Raw string

// Funcs are functions by name. A function returns a value, or a value and an error.
type Funcs map[string]any

// Template is a set of templates that are parsed.
type Template struct {
	trees   map[string]*parse.Tree
	funcs   map[string]reflect.Value
	methods map[string][]reflect.Value
}

// New parses the templates that text defines, and text itself as name. Methods are method expressions, such as
// (*T).Name, by the name that templates have for them; several types may have one of a name.
func New(name, text string, funcs Funcs, methods map[string][]any) (*Template, error) {
	t := &Template{trees: map[string]*parse.Tree{}, funcs: map[string]reflect.Value{}, methods: map[string][]reflect.Value{}}
	known := map[string]any{}
	for _, set := range []Funcs{builtins, funcs} {
		for name, f := range set {
			t.funcs[name], known[name] = reflect.ValueOf(f), f
		}
	}
	for _, name := range []string{"and", "or"} { // evaluate no more arguments than they need
		known[name] = name
	}
	for name, list := range methods {
		for _, m := range list {
			t.methods[name] = append(t.methods[name], reflect.ValueOf(m))
		}
	}
	trees, err := parse.Parse(name, text, "", "", known)
	if err != nil {
		return nil, fmt.Errorf("page: %w", err)
	}
	t.trees = trees
	return t, nil
}

// Once returns a function that parses a template when it is called first, as [New] does, and panics if that fails: most processes fill
// none. The text is in a file.
func Once(name string, files fs.FS, file string, funcs Funcs, methods map[string][]any) func() *Template {
	return sync.OnceValue(func() *Template {
		text, err := fs.ReadFile(files, file)
		if err != nil {
			panic(err)
		}
		t, err := New(name, string(text), funcs, methods)
		if err != nil {
			panic(err)
		}
		return t
	})
}

// Execute writes the template of a name, filled with data.
func (t *Template) Execute(w io.Writer, name string, data any) error {
	s := &state{t: t, w: w}
	if err := s.template(name, reflect.ValueOf(data)); err != nil {
		return fmt.Errorf("page: template %s: %w", name, err)
	}
	return nil
}

var builtins = Funcs{
	"not":    func(x any) bool { return !truth(reflect.ValueOf(x)) },
	"len":    func(x any) int { return reflect.ValueOf(x).Len() },
	"printf": fmt.Sprintf,
	"eq":     equal,
	"ne":     func(a, b any) (bool, error) { same, err := equal(a, b); return !same, err },
	"index":  index,
}

func equal(a, b any) (bool, error) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	switch {
	case x.CanInt() && y.CanInt():
		return x.Int() == y.Int(), nil
	case x.CanFloat() && y.CanFloat():
		return x.Float() == y.Float(), nil
	case x.Kind() == reflect.String && y.Kind() == reflect.String:
		return x.String() == y.String(), nil
	}
	return false, fmt.Errorf("%T and %T are not compared", a, b)
}

func index(of, at any) (any, error) {
	v, i := reflect.ValueOf(of), reflect.ValueOf(at)
	switch {
	case v.Kind() == reflect.Map && i.Type().AssignableTo(v.Type().Key()):
		if x := v.MapIndex(i); x.IsValid() {
			return x.Interface(), nil
		}
		return reflect.Zero(v.Type().Elem()).Interface(), nil
	case v.Kind() == reflect.Slice && i.CanInt() && i.Int() >= 0 && i.Int() < int64(v.Len()):
		return v.Index(int(i.Int())).Interface(), nil
	}
	return nil, fmt.Errorf("%T has no element %v", of, at)
}

// truth reports whether text/template takes a value for true.
func truth(v reflect.Value) bool {
	v = inner(v)
	switch v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() > 0
	case reflect.Struct:
		return true
	default:
		return !v.IsZero()
	}
}

// inner returns the value that an interface holds.
func inner(v reflect.Value) reflect.Value {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	return v
}

// state is a template that is being filled.
type state struct {
	t    *Template
	w    io.Writer
	vars []variable
}

type variable struct {
	name  string
	value reflect.Value
}

// template fills a template with variables of its own.
func (s *state) template(name string, dot reflect.Value) error {
	tree := s.t.trees[name]
	if tree == nil {
		return errors.New("there is none")
	}
	own := &state{t: s.t, w: s.w, vars: []variable{{"$", dot}}}
	return own.walk(dot, tree.Root)
}

func (s *state) walk(dot reflect.Value, node parse.Node) error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, x := range n.Nodes {
			if err := s.walk(dot, x); err != nil {
				return err
			}
		}
		return nil
	case *parse.TextNode:
		_, err := s.w.Write(n.Text)
		return err
	case *parse.ActionNode:
		v, err := s.pipe(dot, n.Pipe)
		if err != nil || len(n.Pipe.Decl) > 0 {
			return err
		}
		_, err = io.WriteString(s.w, escape(v))
		return err
	case *parse.IfNode:
		return s.branch(dot, &n.BranchNode, false)
	case *parse.WithNode:
		return s.branch(dot, &n.BranchNode, true)
	case *parse.RangeNode:
		return s.each(dot, &n.BranchNode)
	case *parse.TemplateNode:
		var v reflect.Value
		if n.Pipe != nil {
			var err error
			if v, err = s.pipe(dot, n.Pipe); err != nil {
				return err
			}
		}
		return s.template(n.Name, v)
	}
	return fmt.Errorf("%s is not supported", node)
}

// branch is if, or with, whose value is the dot of what follows.
func (s *state) branch(dot reflect.Value, n *parse.BranchNode, with bool) error {
	defer s.pop(len(s.vars))
	v, err := s.pipe(dot, n.Pipe)
	switch {
	case err != nil:
		return err
	case !truth(v):
		return s.walk(dot, n.ElseList)
	case with:
		return s.walk(v, n.List)
	}
	return s.walk(dot, n.List)
}

func (s *state) each(dot reflect.Value, n *parse.BranchNode) error {
	defer s.pop(len(s.vars))
	of, err := s.pipe(dot, &parse.PipeNode{Cmds: n.Pipe.Cmds})
	if err != nil {
		return err
	}
	one := func(key, value reflect.Value) error {
		defer s.pop(len(s.vars))
		switch names := n.Pipe.Decl; len(names) {
		case 1:
			s.vars = append(s.vars, variable{names[0].Ident[0], value})
		case 2:
			s.vars = append(s.vars, variable{names[0].Ident[0], key}, variable{names[1].Ident[0], value})
		}
		return s.walk(value, n.List)
	}
	of = inner(of)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch of.Kind() {
	case reflect.Slice, reflect.Array:
		if of.Len() == 0 {
			break
		}
		for i := range of.Len() {
			if err := one(reflect.ValueOf(i), of.Index(i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Map:
		keys := of.MapKeys()
		if len(keys) == 0 {
			break
		}
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, key := range keys {
			if err := one(key, of.MapIndex(key)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Invalid:
	default:
		return fmt.Errorf("%s is no range", n.Pipe)
	}
	return s.walk(dot, n.ElseList)
}

func (s *state) pop(to int) { s.vars = s.vars[:to] }

// pipe evaluates a command and gives its value to the variable that is declared.
func (s *state) pipe(dot reflect.Value, p *parse.PipeNode) (reflect.Value, error) {
	if len(p.Cmds) != 1 || p.IsAssign || len(p.Decl) > 1 {
		return reflect.Value{}, fmt.Errorf("%s is not supported", p)
	}
	v, err := s.command(dot, p.Cmds[0].Args)
	if err == nil && len(p.Decl) == 1 {
		s.vars = append(s.vars, variable{p.Decl[0].Ident[0], v})
	}
	return v, err
}

func (s *state) command(dot reflect.Value, args []parse.Node) (reflect.Value, error) {
	switch n := args[0].(type) {
	case *parse.IdentifierNode:
		switch n.Ident {
		case "and", "or":
			return s.shortcut(dot, n.Ident == "or", args[1:])
		}
		return s.call(n.Ident, dot, s.t.funcs[n.Ident], reflect.Value{}, args[1:])
	case *parse.FieldNode:
		return s.fields(dot, dot, n.Ident, args[1:])
	case *parse.VariableNode:
		v, err := s.variable(n.Ident[0])
		if err != nil {
			return v, err
		}
		return s.fields(dot, v, n.Ident[1:], args[1:])
	case *parse.PipeNode:
		return s.pipe(dot, n)
	}
	if len(args) > 1 {
		return reflect.Value{}, fmt.Errorf("%s is no function", args[0])
	}
	switch n := args[0].(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.StringNode:
		return reflect.ValueOf(n.Text), nil
	case *parse.NumberNode:
		if n.IsInt {
			return reflect.ValueOf(int(n.Int64)), nil
		}
		return reflect.ValueOf(n.Float64), nil
	case *parse.BoolNode:
		return reflect.ValueOf(n.True), nil
	}
	return reflect.Value{}, fmt.Errorf("%s is not supported", args[0])
}

// shortcut is or, the first value that is true, or and, the first that is not; else the last one.
func (s *state) shortcut(dot reflect.Value, until bool, args []parse.Node) (v reflect.Value, err error) {
	for _, a := range args {
		if v, err = s.command(dot, []parse.Node{a}); err != nil || truth(v) == until {
			return v, err
		}
	}
	return v, nil
}

func (s *state) variable(name string) (reflect.Value, error) {
	for _, v := range slices.Backward(s.vars) {
		if v.name == name {
			return v.value, nil
		}
	}
	return reflect.Value{}, fmt.Errorf("there is no variable %s", name)
}

// fields goes from a value to a field or method of it, and on from there. The last one may have arguments.
func (s *state) fields(dot, v reflect.Value, names []string, args []parse.Node) (reflect.Value, error) {
	for i, name := range names {
		var of []parse.Node
		if i == len(names)-1 {
			of = args
		}
		var err error
		if v, err = s.field(dot, v, name, of); err != nil {
			return v, err
		}
	}
	return v, nil
}

func (s *state) field(dot, v reflect.Value, name string, args []parse.Node) (reflect.Value, error) {
	v = inner(v)
	for _, m := range s.t.methods[name] {
		if receiver, ok := fit(v, m.Type().In(0)); ok {
			return s.call(name, dot, m, receiver, args)
		}
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Struct && len(args) == 0 {
		if f, ok := v.Type().FieldByName(name); ok && f.IsExported() {
			return v.FieldByIndexErr(f.Index)
		}
	}
	kind := "nothing"
	if v.IsValid() {
		kind = v.Type().String()
	}
	return reflect.Value{}, fmt.Errorf("%s has no field or method %s", kind, name)
}

// fit is a value, or what it points to, or its address, as one of a type.
func fit(v reflect.Value, want reflect.Type) (reflect.Value, bool) {
	v = inner(v)
	switch {
	case !v.IsValid():
		return reflect.Zero(want), want.Kind() == reflect.Interface || want.Kind() == reflect.Pointer
	case v.Type().AssignableTo(want):
		return v, true
	case v.Kind() == reflect.Pointer && !v.IsNil() && v.Type().Elem().AssignableTo(want):
		return v.Elem(), true
	case v.CanAddr() && v.Addr().Type().AssignableTo(want):
		return v.Addr(), true
	}
	return v, false
}

// call calls a function, or a method if there is a receiver.
func (s *state) call(name string, dot, f, receiver reflect.Value, args []parse.Node) (reflect.Value, error) {
	var in []reflect.Value
	if receiver.IsValid() {
		in = append(in, receiver)
	}
	kind := f.Type()
	if want := kind.NumIn() - len(in); len(args) != want && !(kind.IsVariadic() && len(args) >= want-1) {
		return reflect.Value{}, fmt.Errorf("%s has %d arguments", name, len(args))
	}
	for _, a := range args {
		v, err := s.command(dot, []parse.Node{a})
		if err != nil {
			return v, err
		}
		var want reflect.Type
		if at := len(in); kind.IsVariadic() && at >= kind.NumIn()-1 {
			want = kind.In(kind.NumIn() - 1).Elem()
		} else {
			want = kind.In(at)
		}
		v, ok := fit(v, want)
		if _, constant := a.(*parse.NumberNode); !ok && constant && v.CanConvert(want) {
			v, ok = v.Convert(want), true
		}
		if !ok {
			return reflect.Value{}, fmt.Errorf("%s takes no %s", name, v.Type())
		}
		in = append(in, v)
	}
	out := f.Call(in)
	if len(out) == 2 && !out[1].IsNil() {
		return reflect.Value{}, out[1].Interface().(error)
	}
	return inner(out[0]), nil
}

// marks are those that html/template replaces in text and in attributes.
var marks = strings.NewReplacer("\x00", "\uFFFD", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;")

// escape is a value as HTML.
func escape(v reflect.Value) string {
	v = inner(v)
	if !v.IsValid() {
		return ""
	}
	x := v.Interface()
	switch x := x.(type) {
	case Raw:
		return string(x)
	case fmt.Stringer, error:
		return marks.Replace(fmt.Sprint(x))
	}
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		return escape(v.Elem())
	}
	return marks.Replace(fmt.Sprint(x))
}
