package wasmbin

import (
	"fmt"
	"iter"
	"math"
)

// noFunction is above the index of any function.
const noFunction = math.MaxUint32

// functionBodies yields the index and a reader of each function that the
// module defines.
func (m *Module) functionBodies() iter.Seq2[int, *reader] {
	return func(yield func(int, *reader) bool) {
		code, base := m.body(sectionCode), m.offset(sectionCode)
		for i, at := range m.bodies {
			r := &reader{buf: code[at.start:at.end], base: base + at.start}
			if !yield(m.importedFuncs+i, r) {
				return
			}
		}
	}
}

// locals reads the declarations of a function's local variables and returns
// how many there are, parameters not included.
func (r *reader) locals() uint32 {
	start := r.pos
	var total uint64
	for n := r.count(); n > 0; n-- {
		total += uint64(r.u32())
		r.valueType()
	}
	if total > math.MaxUint32 {
		r.fail(start, fmt.Errorf("%d local variables", total))
		return 0
	}
	return uint32(total)
}

// checkFunction makes r fail if the function index at the extent given is out
// of range.
func (m *Module) checkFunction(r *reader, at span) {
	index := r.at(at)
	index.index(len(m.functions), "function")
	if index.err != nil && r.err == nil {
		r.err = index.err
	}
}

// moveFunctions raises by one all function indexes from first on that sections
// other than the code section hold.
func (m *Module) moveFunctions(first uint32) {
	for i, s := range m.sections {
		moved := splicer{src: s.body}
		walkFunctionIndexes(s.id, &reader{buf: s.body}, func(at span) {
			moved.moveFunction(at, first)
		})
		if moved.done > 0 {
			moved.copyTo(len(s.body))
			m.sections[i] = section{id: s.id, body: moved.out}
		}
	}
}

// moveFunction raises the function index at the extent given by one if it is
// first or above. Others keep their encoding.
func (s *splicer) moveFunction(at span, first uint32) {
	r := &reader{buf: s.src[at.start:at.end]}
	if i := r.u32(); i >= first {
		s.replace(at)
		s.out = appendU32(s.out, i+1)
	}
}

// walkFunctionIndexes calls visit with the extent of every function index in
// the section id that r reads, except for the code section.
func walkFunctionIndexes(id byte, r *reader, visit func(span)) {
	switch id {
	case sectionGlobal:
		for n := r.count(); n > 0 && r.err == nil; n-- {
			r.valueType()
			r.mutability()
			r.walkConstant(visit)
		}
	case sectionExport:
		for n := r.count(); n > 0 && r.err == nil; n-- {
			r.name()
			kind := Kind(r.byte())
			start := r.pos
			r.u32()
			if kind == KindFunction {
				visit(span{start, r.pos})
			}
		}
	case sectionStart:
		visit(span{0, len(r.buf)})
	case sectionElement:
		walkElements(r, visit)
	}
}

// walkConstant reads a constant expression and calls visit with the extent of
// every function index in it.
func (r *reader) walkConstant(visit func(span)) {
	r.expression(func(in instruction) {
		if in.op.namesFunction() {
			visit(span{in.immediate, in.end})
		}
	})
}

// walkElements reads an element section and calls visit with the extent of
// every function index in it.
// https://www.w3.org/TR/wasm-core-2/#element-section%E2%91%A0
func walkElements(r *reader, visit func(span)) {
	const (
		passive     = 1 << iota // or declarative, if explicit is set too
		explicit                // names its table
		expressions             // elements are expressions, not indexes
	)
	for n := r.count(); n > 0 && r.err == nil; n-- {
		start := r.pos
		flags := r.u32()
		if flags > passive|explicit|expressions {
			r.fail(start, fmt.Errorf("unknown element segment flags %#x", flags))
			return
		}
		if flags&passive == 0 {
			if flags&explicit != 0 {
				r.u32()
			}
			r.walkConstant(visit) // the offset
		}
		if flags&(passive|explicit) != 0 {
			start := r.pos
			if flags&expressions != 0 {
				r.refType()
			} else if kind := r.byte(); kind != 0 {
				r.fail(start, fmt.Errorf("unknown element kind %#x", kind))
			}
		}
		for n := r.count(); n > 0 && r.err == nil; n-- {
			if flags&expressions != 0 {
				r.walkConstant(visit)
				continue
			}
			start := r.pos
			r.u32()
			if r.err == nil {
				visit(span{start, r.pos})
			}
		}
	}
}
