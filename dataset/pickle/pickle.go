package pickle

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

const (
	// MaxText is the longest string that is kept; a longer one stays in the file.
	MaxText = 256
	// MaxObjects is the number of bytes of pickle, apart from skipped strings, that are read.
	MaxObjects = 8 << 20
	// MaxHeld bounds the bytes of memory that the objects of a pickle take. A byte of pickle can
	// make a hundred of them.
	MaxHeld = 32 << 20

	// maxStack bounds the values that wait for the object of which they become a part: Python
	// makes lists and dicts a thousand items at a time, and a tuple of all of its items.
	maxStack = 1 << 18
	// maxDims bounds the dimensions of an array, and maxType the name of a type of its elements.
	maxDims = 16
	maxType = 16
)

// What is counted for objects towards MaxHeld, in bytes: what they take of the heap, with what a slice or map
// that grows has to spare.
const (
	tableCost  = 64 // of an entry of the memo
	objectCost = 64 // of a list, a dict, a tuple, a text or a class, beside what is in it
	arrayCost  = 512
	itemCost   = 28 // of a value within another one; a number is on the heap by itself
	intCost    = 10 // of a number of a list of numbers
)

var (
	// ErrFormat reports a damaged pickle or one that uses what is not supported.
	ErrFormat = errors.New("damaged or unsupported pickle")
	// ErrClass reports a class that is not on the list of known ones.
	ErrClass = errors.New("class is not allowed in a pickle")
	// ErrTooLarge reports more than MaxObjects bytes of pickle, or objects that take more than MaxHeld.
	ErrTooLarge = errors.New("pickle is too large")
)

// A value is one of: nil, bool, int64, float64, Bytes, Tuple, *List, *Dict,
// Class, *Array, *Object, and dtypes.
type (
	// Tuple is a Python tuple.
	Tuple []any
	// Class is a class or function, by name.
	Class struct{ Module, Name string }
	// Pair is an entry of a Dict.
	Pair struct{ Key, Value any }
	// Dict is a dict or defaultdict, in stored order.
	Dict struct{ Pairs []Pair }
	// Object is an instance of a SciPy matrix class, or of a class of an extension; State holds the
	// state that its pickle gave to it, a *Dict.
	Object struct {
		Class Class
		State any
	}
)

// Bytes is a string or byte string.
type Bytes struct {
	// Off and Len say where its bytes lie in the pickle.
	Off, Len int64
	// Text holds it if Len is at most MaxText.
	Text string
	// Latin1 is true if the bytes in the pickle are the UTF-8 form of a text
	// whose characters are the bytes meant.
	Latin1 bool
}

// List is a Python list. While all items are integers they are in Ints and Items
// is empty, otherwise all are in Items.
type List struct {
	Ints  []int64
	Items []any
}

// Array is a NumPy array.
type Array struct {
	Descr   string // as in a NumPy file header
	Fortran bool
	Shape   []int64
	Data    Bytes
	Objects *List // the elements of an object array
}

// dtype is a NumPy element type.
type dtype struct{ kind, descr string }

// Get returns the value of a string key.
func (d *Dict) Get(key string) (any, bool) {
	for _, p := range d.Pairs {
		if b, ok := p.Key.(Bytes); ok && b.Len <= MaxText && b.Text == key {
			return p.Value, true
		}
	}
	return nil, false
}

// Describe says in a few words what a value is, for a message. It does not look into a value that holds others: such a
// value may hold itself.
func Describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool, int64, float64:
		return fmt.Sprint(v)
	case Bytes:
		if v.Len <= MaxText {
			return strconv.Quote(v.Text)
		}
		return "a long text"
	case Tuple:
		return fmt.Sprintf("a tuple of %d items", len(v))
	case *List:
		return fmt.Sprintf("a list of %d items", v.Len())
	case *Dict:
		return fmt.Sprintf("a dict of %d entries", len(v.Pairs))
	case *Array:
		return "an array"
	case *Object:
		return "a " + v.Class.Name
	case Class:
		return "the class " + v.Name
	}
	return "another object"
}

// Len is the number of items.
func (l *List) Len() int { return max(len(l.Ints), len(l.Items)) }

func (l *List) add(v any) {
	n, isInt := v.(int64)
	if isInt && len(l.Items) == 0 {
		l.Ints = append(l.Ints, n)
		return
	}
	l.Items = slices.Grow(l.Items, len(l.Ints)+1)
	for _, i := range l.Ints {
		l.Items = append(l.Items, i)
	}
	l.Ints = nil
	l.Items = append(l.Items, v)
}

// cost returns the memory that add will charge.
func (l *List) cost(v any) int64 {
	if _, isInt := v.(int64); isInt && len(l.Items) == 0 {
		return intCost
	}
	return itemCost * int64(len(l.Ints)+1)
}

// allowed is every class and function that a pickle may name.
var allowed = map[Class]func(args Tuple) (any, error){
	{"numpy.core.multiarray", "_reconstruct"}:  newArray,
	{"numpy._core.multiarray", "_reconstruct"}: newArray,
	{"numpy.core.multiarray", "scalar"}:        newScalar,
	{"numpy._core.multiarray", "scalar"}:       newScalar,
	{"numpy", "ndarray"}:                       nil,
	{"numpy", "dtype"}:                         newType,
	{"scipy.sparse.csr", "csr_matrix"}:         newCSR,
	{"scipy.sparse._csr", "csr_matrix"}:        newCSR,
	{"scipy.sparse._csr", "csr_array"}:         newCSR,
	{"collections", "defaultdict"}:             newDict,
	{"collections", "OrderedDict"}:             newDict,
	{"__builtin__", "list"}:                    newList,
	{"builtins", "list"}:                       newList,
	{"__builtin__", "dict"}:                    newDict,
	{"builtins", "dict"}:                       newDict,
	{"_codecs", "encode"}:                      encode,
}

func newArray(Tuple) (any, error) { return &Array{}, nil }
func newCSR(Tuple) (any, error)   { return &Object{}, nil }
func newDict(Tuple) (any, error)  { return &Dict{}, nil }
func newList(args Tuple) (any, error) {
	if len(args) != 0 {
		return nil, errors.New("list with arguments")
	}
	return &List{}, nil
}

func newType(args Tuple) (any, error) {
	if len(args) > 0 {
		if b, ok := args[0].(Bytes); ok && b.Len <= maxType {
			return &dtype{kind: b.Text, descr: "|" + b.Text}, nil
		}
	}
	return nil, errors.New("dtype without a name")
}

// newScalar turns a NumPy integer into an int64.
func newScalar(args Tuple) (any, error) {
	if len(args) == 2 {
		t, isType := args[0].(*dtype)
		b, isBytes := args[1].(Bytes)
		if isType && isBytes && (t.descr == "<i8" || t.descr == "<i4") && len(b.Text) == int(t.kind[1]-'0') {
			var raw [8]byte
			copy(raw[:], b.Text)
			if t.descr == "<i4" {
				return int64(int32(binary.LittleEndian.Uint32(raw[:]))), nil
			}
			return int64(binary.LittleEndian.Uint64(raw[:])), nil
		}
	}
	return nil, errors.New("only int32 and int64 scalars are supported")
}

func encode(args Tuple) (any, error) {
	if len(args) == 2 {
		text, isText := args[0].(Bytes)
		codec, isCodec := args[1].(Bytes)
		if isText && isCodec && codec.Text == "latin1" {
			text.Latin1 = true
			if text.Len <= MaxText {
				raw := make([]byte, 0, len(text.Text))
				for _, r := range text.Text {
					if r > 255 {
						return nil, errors.New("character outside latin1")
					}
					raw = append(raw, byte(r))
				}
				text.Text = string(raw)
			}
			return text, nil
		}
	}
	return nil, errors.New("only _codecs.encode(text, 'latin1') is supported")
}

// setState does what Python's __setstate__ does for the classes above.
func setState(target, state any) error {
	switch target := target.(type) {
	case *dtype:
		// (version, byte order, subtype, names, fields, …)
		t, ok := state.(Tuple)
		if !ok || len(t) < 5 {
			return errors.New("dtype state")
		}
		order, ok := t[1].(Bytes)
		if !ok || order.Len > 1 || t[2] != nil || t[3] != nil {
			return errors.New("structured dtypes are not supported")
		}
		target.descr = order.Text + target.kind
		return nil
	case *Array:
		return target.setState(state)
	case *Object:
		target.State = state
		return nil
	}
	return fmt.Errorf("BUILD of a %T", target)
}

func (a *Array) setState(state any) error {
	// (version, shape, dtype, is Fortran, data)
	t, ok := state.(Tuple)
	if !ok || len(t) != 5 {
		return errors.New("array state")
	}
	shape, shapeOK := t[1].(Tuple)
	kind, kindOK := t[2].(*dtype)
	fortran, fortranOK := t[3].(bool)
	if !shapeOK || !kindOK || !fortranOK {
		return errors.New("array state")
	}
	if len(shape) > maxDims {
		return fmt.Errorf("an array of %d dimensions", len(shape))
	}
	a.Descr, a.Fortran, a.Shape = kind.descr, fortran, make([]int64, len(shape))
	for i, d := range shape {
		n, ok := d.(int64)
		if !ok || n < 0 {
			return errors.New("array shape")
		}
		a.Shape[i] = n
	}
	switch data := t[4].(type) {
	case Bytes:
		a.Data = data
	case *List:
		a.Objects = data
	default:
		return errors.New("array data")
	}
	return nil
}

// mark separates the items of a list under construction on the stack.
type mark struct{}

// Extension lists what a pickle may name beside the classes of this package.
type Extension struct {
	// Construct makes the data that stands for an instance of a class, or for what a
	// function returns; it is nil for a class that the extension does not know.
	Construct func(Class) func(args Tuple) (any, error)
	// Persistent makes the data that stands for a persistent id.
	Persistent func(id any) (any, error)
	// Known names the classes, for the message about another one.
	Known string
}

// constructor finds a class.
func (m *machine) constructor(c Class) (construct func(Tuple) (any, error), known bool) {
	if construct, known = allowed[c]; !known && m.Construct != nil {
		construct = m.Construct(c)
		known = construct != nil
	}
	return construct, known
}

type machine struct {
	Extension
	r       *bufio.Reader
	pos     int64
	skipped int64
	stack   []any
	memo    map[int64]any
	held    int64 // of what was made so far, also of what is not used any more
	err     error
}

// Read reads one pickle from the front of r. Offsets in the result count from
// there. Errors wrap [ErrFormat], [ErrClass] or [ErrTooLarge] and name the offset.
func Read(r io.Reader) (any, error) { return ReadWith(r, Extension{}) }

// ReadWith is Read with more classes.
func ReadWith(r io.Reader, e Extension) (any, error) {
	m := &machine{Extension: e, r: bufio.NewReaderSize(r, 64<<10), memo: map[int64]any{}}
	if op := m.byte(); m.err == nil && op != 0x80 {
		m.fail("it does not start with a protocol number; only protocols 2 to 4 are read")
	}
	if version := m.byte(); m.err == nil && (version < 2 || version > 4) {
		m.fail(fmt.Sprintf("protocol %d; only protocols 2 to 4 are read", version))
	}
	for m.err == nil {
		if m.pos-m.skipped > MaxObjects {
			return nil, fmt.Errorf("%w: more than %d MiB outside of arrays", ErrTooLarge, MaxObjects>>20)
		}
		op := m.byte()
		if op == '.' && m.err == nil {
			return m.pop(), m.err
		}
		m.step(op)
	}
	return nil, m.err
}

func (m *machine) fail(reason string) {
	if m.err == nil {
		m.err = fmt.Errorf("%w: at byte %d: %s", ErrFormat, m.pos, reason)
	}
}

// hold counts n bytes of objects.
func (m *machine) hold(n int64) {
	if m.held += n; m.held > MaxHeld && m.err == nil {
		m.err = fmt.Errorf("%w: at byte %d its objects take more than %d MiB", ErrTooLarge, m.pos, MaxHeld>>20)
	}
}

func (m *machine) readFailed(err error) {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		m.fail("it ends too early")
	} else if m.err == nil {
		m.err = fmt.Errorf("pickle: read: %w", err)
	}
}

func (m *machine) byte() byte {
	if m.err != nil {
		return 0
	}
	b, err := m.r.ReadByte()
	if err != nil {
		m.readFailed(err)
		return 0
	}
	m.pos++
	return b
}

// uint reads a little-endian number of n ≤ 8 bytes.
func (m *machine) uint(n int) uint64 {
	var v uint64
	for i := range n {
		v |= uint64(m.byte()) << (8 * i)
	}
	return v
}

// text reads a string of n bytes, or skips it if it is long.
func (m *machine) text(n uint64) {
	if n > math.MaxInt64>>1 {
		m.fail("negative length of a string")
		return
	}
	b := Bytes{Off: m.pos, Len: int64(n)}
	m.hold(objectCost)
	if n <= MaxText {
		m.hold(int64(n))
		buf := make([]byte, n)
		if _, err := io.ReadFull(m.r, buf); err != nil {
			m.readFailed(err)
			return
		}
		b.Text = string(buf)
	} else if err := discard(m.r, int64(n)); err != nil {
		m.readFailed(err)
		return
	} else {
		m.skipped += int64(n)
	}
	m.pos += int64(n)
	m.push(b)
}

func discard(r *bufio.Reader, n int64) error {
	for n > 0 {
		step := int(min(n, 1<<30))
		if _, err := r.Discard(step); err != nil {
			return err
		}
		n -= int64(step)
	}
	return nil
}

func (m *machine) line() string {
	s, err := m.r.ReadSlice('\n')
	if err != nil {
		if errors.Is(err, bufio.ErrBufferFull) {
			m.fail("endless name")
		} else {
			m.readFailed(err)
		}
		return ""
	}
	m.pos += int64(len(s))
	return string(s[:len(s)-1])
}

func (m *machine) push(v any) {
	if len(m.stack) >= maxStack && m.err == nil {
		m.err = fmt.Errorf("%w: at byte %d more than %d values wait", ErrTooLarge, m.pos, maxStack)
	}
	if m.err == nil {
		m.stack = append(m.stack, v)
	}
}

// tuple pushes a tuple.
func (m *machine) tuple(t Tuple) {
	m.hold(objectCost + itemCost*int64(len(t)))
	m.push(t)
}

// put keeps the value on top of the stack under a number.
func (m *machine) put(key int64) {
	v := m.top()
	if m.hold(tableCost); m.err == nil {
		m.memo[key] = v
	}
}

func (m *machine) pop() any {
	v := m.top()
	if m.err == nil {
		m.stack = m.stack[:len(m.stack)-1]
	}
	return v
}

func (m *machine) top() any {
	if len(m.stack) == 0 {
		m.fail("the stack is empty")
	}
	if m.err != nil {
		return nil
	}
	v := m.stack[len(m.stack)-1]
	if _, isMark := v.(mark); isMark {
		m.fail("a mark where a value is needed")
	}
	return v
}

// popN takes n values off the stack, in the order in which they were pushed.
func (m *machine) popN(n int) Tuple {
	t := make(Tuple, n)
	for i := n - 1; i >= 0; i-- {
		t[i] = m.pop()
	}
	return t
}

// popMark takes the values above the last mark, and the mark. The slice is valid
// until the next push.
func (m *machine) popMark() []any {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, isMark := m.stack[i].(mark); isMark {
			items := m.stack[i+1:]
			m.stack = m.stack[:i]
			return items
		}
	}
	m.fail("no mark on the stack")
	return nil
}

// class pushes a class from the list of known ones.
func (m *machine) class(module, name string) {
	c := Class{module, name}
	if _, known := m.constructor(c); !known && m.err == nil {
		m.err = fmt.Errorf("%w: %s.%s at byte %d: only NumPy arrays, SciPy CSR matrices, lists and dicts%s are read, nothing is executed",
			ErrClass, module, name, m.pos, m.Known)
	}
	m.hold(objectCost + int64(len(module)+len(name)))
	m.push(c)
}

// construct makes the data that stands for a call.
func (m *machine) construct(callable, args any) {
	c, isClass := callable.(Class)
	a, isTuple := args.(Tuple)
	var build func(Tuple) (any, error)
	if isClass {
		build, _ = m.constructor(c)
	}
	if !isTuple || build == nil {
		m.fail("a call of something that is no class")
		return
	}
	v, err := build(a)
	if err != nil {
		m.fail(err.Error())
		return
	}
	if o, ok := v.(*Object); ok {
		o.Class = c
	}
	m.made(v)
}

// made pushes what a call has made.
func (m *machine) made(v any) {
	switch v := v.(type) {
	case nil, bool, int64, float64:
	case Bytes:
		m.hold(objectCost + int64(len(v.Text)))
	case *List, *Dict:
		m.hold(objectCost)
	default:
		m.hold(arrayCost)
	}
	m.push(v)
}

func (m *machine) appendAll(items ...any) {
	list, ok := m.top().(*List)
	if !ok {
		m.fail("items for something that is no list")
		return
	}
	for _, v := range items {
		if m.hold(list.cost(v)); m.err != nil {
			return
		}
		list.add(v)
	}
}

func (m *machine) setItems(items ...any) {
	dict, ok := m.top().(*Dict)
	if !ok || len(items)%2 != 0 {
		m.fail("entries for something that is no dict")
		return
	}
	if m.hold(itemCost * int64(len(items))); m.err != nil {
		return
	}
	for i := 0; i < len(items); i += 2 {
		dict.Pairs = append(dict.Pairs, Pair{items[i], items[i+1]})
	}
}

func (m *machine) recall(key int64) {
	v, ok := m.memo[key]
	if !ok {
		m.fail("a reference to nothing")
	}
	m.push(v)
}

// step executes one opcode; the names come from pickletools.
func (m *machine) step(op byte) {
	switch op {
	case '(': // MARK
		m.push(mark{})
	case '0': // POP
		if n := len(m.stack); n > 0 {
			m.stack = m.stack[:n-1]
		}
	case '1': // POP_MARK
		m.popMark()
	case '2': // DUP
		m.push(m.top())
	case 'N': // NONE
		m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		m.push(op == 0x88)
	case 'J': // BININT
		m.push(int64(int32(m.uint(4))))
	case 'K': // BININT1
		m.push(int64(m.byte()))
	case 'M': // BININT2
		m.push(int64(m.uint(2)))
	case 0x8a: // LONG1
		m.long(int(m.byte()))
	case 'G': // BINFLOAT, the only big-endian number
		var raw [8]byte
		for i := range raw {
			raw[i] = m.byte()
		}
		m.push(math.Float64frombits(binary.BigEndian.Uint64(raw[:])))
	case 'U', 'C', 0x8c: // SHORT_BINSTRING, SHORT_BINBYTES, SHORT_BINUNICODE
		m.text(uint64(m.byte()))
	case 'T', 'B', 'X': // BINSTRING, BINBYTES, BINUNICODE
		m.text(m.uint(4))
	case 0x8d, 0x8e: // BINUNICODE8, BINBYTES8
		m.text(m.uint(8))
	case ')': // EMPTY_TUPLE
		m.tuple(Tuple{})
	case 't': // TUPLE
		m.tuple(append(Tuple{}, m.popMark()...))
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		m.tuple(m.popN(int(op - 0x84)))
	case ']': // EMPTY_LIST
		m.made(&List{})
	case 'a': // APPEND
		v := m.pop()
		m.appendAll(v)
	case 'e': // APPENDS
		items := m.popMark()
		m.appendAll(items...)
	case '}': // EMPTY_DICT
		m.made(&Dict{})
	case 's': // SETITEM
		t := m.popN(2)
		m.setItems(t...)
	case 'u': // SETITEMS
		items := m.popMark()
		m.setItems(items...)
	case 'c': // GLOBAL
		module := m.line()
		m.class(module, m.line())
	case 0x93: // STACK_GLOBAL
		t := m.popN(2)
		module, moduleOK := t[0].(Bytes)
		name, nameOK := t[1].(Bytes)
		if !moduleOK || !nameOK {
			m.fail("a class without a name")
			return
		}
		m.class(module.Text, name.Text)
	case 'R', 0x81: // REDUCE, NEWOBJ
		t := m.popN(2)
		m.construct(t[0], t[1])
	case 'b': // BUILD
		state := m.pop()
		if err := setState(m.top(), state); err != nil {
			m.fail(err.Error())
		}
	case 'Q': // BINPERSID
		id := m.pop()
		if m.Persistent == nil {
			m.fail("a persistent id")
			return
		}
		v, err := m.Persistent(id)
		if err != nil {
			m.fail(err.Error())
			return
		}
		m.made(v)
	case 'q': // BINPUT
		m.put(int64(m.byte()))
	case 'r': // LONG_BINPUT
		m.put(int64(m.uint(4)))
	case 0x94: // MEMOIZE
		m.put(int64(len(m.memo)))
	case 'h': // BINGET
		m.recall(int64(m.byte()))
	case 'j': // LONG_BINGET
		m.recall(int64(m.uint(4)))
	case 0x95: // FRAME
		m.uint(8)
	default:
		m.fail(fmt.Sprintf("opcode %#02x is not supported", op))
	}
}

// long pushes a signed little-endian integer of n bytes.
func (m *machine) long(n int) {
	if n > 8 {
		m.fail("an integer of more than 64 bits")
		return
	}
	v := int64(m.uint(n))
	if shift := 64 - 8*n; n > 0 {
		v = v << shift >> shift
	}
	m.push(v)
}
