package wasmbin

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

const (
	// DefaultInterval is the interval of a [FuelOptions] that gives none.
	DefaultInterval = 50_000

	// DefaultGlobal is the global's name in a [FuelOptions] that gives none.
	DefaultGlobal = "codeexec_fuel"

	maxInterval = 1 << 30
)

// FuelOptions says how [AddFuel] counts.
type FuelOptions struct {
	// Module and Name name the function, without parameters and results, that
	// is called when the fuel is used up. It is imported unless it already
	// is. Both are required.
	Module, Name string

	// Global is the name under which the fuel that is left is exported, a
	// mutable i32. The module must not export that name already. Empty means
	// DefaultGlobal.
	Global string

	// Interval is how many loop headers, in all functions together, are
	// passed from one yield to the next, at most 1<<30. 0 means
	// DefaultInterval.
	Interval uint32
}

func (o *FuelOptions) complete() error {
	switch {
	case o.Module == "" || o.Name == "":
		return errors.New("no yield function is named")
	case o.Interval > maxInterval:
		return fmt.Errorf("interval %d is above %d", o.Interval, maxInterval)
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Global == "" {
		o.Global = DefaultGlobal
	}
	return nil
}

// AddFuel makes m call a host function at regular intervals for as long as its
// code runs: every loop header, and every tail call, uses up one unit of fuel,
// and the one that uses up the last calls o.Module.o.Name and starts anew with
// o.Interval units. The host leaves the module by a panic in that function.
//
// The host may set the exported global to bring the next call forward; at 0 or
// below it comes at the next loop header. While the host function runs, the
// global holds o.Interval+1.
//
// Custom sections are dropped, since they describe the code as it was. If
// AddFuel fails, m is as before. It fails for a module that exports o.Global
// already, that imports something else by the yield function's name, or whose
// code has an instruction that isn't known.
func AddFuel(m *Module, o FuelOptions) error {
	err := o.complete()
	if err == nil {
		err = addFuel(m, o)
	}
	if err != nil {
		return fmt.Errorf("wasmbin: add fuel checks: %w", err)
	}
	return nil
}

func addFuel(m *Module, o FuelOptions) error {
	if slices.ContainsFunc(m.exports, func(e Export) bool { return e.Name == o.Global }) {
		return fmt.Errorf("the module already exports %q", o.Global)
	}
	yield, imported, err := m.findYield(o)
	if err != nil {
		return err
	}
	yieldType := slices.IndexFunc(m.types, funcType.isVoid)
	newType := yieldType < 0
	if newType {
		yieldType = len(m.types)
	}
	f := fuel{
		global: uint32(m.globals),
		refill: uint32(len(m.functions)), // after all others
		moved:  noFunction,
	}
	if !imported {
		f.refill++
		f.moved = yield
	}
	code, err := f.instrument(m)
	if err != nil {
		return err
	}
	code = appendBody(code, f.refillBody(yield, o.Interval))

	return m.rewrite(func(next *Module) {
		next.remove(isCustom)
		if newType {
			next.add(sectionType, []byte{typeFunction, 0, 0})
		}
		if !imported {
			next.moveFunctions(f.moved)
			entry := appendName(appendName(nil, o.Module), o.Name)
			next.add(sectionImport, appendU32(append(entry, byte(KindFunction)), uint32(yieldType)))
		}
		next.add(sectionFunction, appendU32(nil, uint32(yieldType)))
		init := appendS32([]byte{byte(I32), mutable, byte(opI32Const)}, int32(o.Interval))
		next.add(sectionGlobal, append(init, byte(opEnd)))
		entry := append(appendName(nil, o.Global), byte(KindGlobal))
		next.add(sectionExport, appendU32(entry, f.global))
		next.set(sectionCode, code)
	})
}

// findYield returns the index of the function that o names: the one that it
// has, if it is imported already, else the one that its import would get.
func (m *Module) findYield(o FuelOptions) (index uint32, imported bool, err error) {
	for _, imp := range m.imports {
		if imp.Module == o.Module && imp.Name == o.Name {
			switch {
			case imp.Kind != KindFunction:
				return 0, false, fmt.Errorf("the import %q %q is a %v, want a func", o.Module, o.Name, imp.Kind)
			case !m.types[m.functions[index]].isVoid():
				return 0, false, fmt.Errorf("the imported function %q %q has parameters or results", o.Module, o.Name)
			}
			return index, true, nil
		}
		if imp.Kind == KindFunction {
			index++
		}
	}
	return index, false, nil
}

func (t funcType) isVoid() bool { return len(t.params)+len(t.results) == 0 }

// fuel inserts the checks into the functions of a module.
type fuel struct {
	global uint32 // index of the global
	refill uint32 // index of the function that yields and resets the global
	moved  uint32 // first of the functions whose index grows by one
}

// instrument returns m's code section with checks, one short of the count that
// it gives: the body of the refill function is still to be appended.
func (f fuel) instrument(m *Module) ([]byte, error) {
	out := make([]byte, 0, len(m.body(sectionCode))*9/8) // a guess that holds for CPython
	out = appendU32(out, uint32(len(m.bodies)+1))
	var body []byte // reused from function to function
	for i, r := range m.functionBodies() {
		params := len(m.types[m.functions[i]].params)
		var err error
		if body, err = f.instrumentBody(body[:0], m, r, params); err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}
		out = appendBody(out, body)
	}
	return out, nil
}

// instrumentBody appends the function body that r reads, with checks, to out.
// The function has as many parameters as params says.
func (f fuel) instrumentBody(out []byte, m *Module, r *reader, params int) ([]byte, error) {
	declared := uint64(params) + uint64(r.locals())
	if declared >= math.MaxUint32 {
		r.fail(0, fmt.Errorf("%d parameters and local variables leave no room for another", declared))
	}
	local := uint32(declared)
	expression, checks := r.pos, 0

	s := splicer{src: r.buf, done: expression, out: out}
	r.expression(func(in instruction) {
		immediate := span{in.immediate, in.end}
		switch in.op {
		case opLoop:
			s.copyTo(in.end)
			if m.blockTakesNothing(r.at(immediate)) {
				s.out = f.appendCheck(s.out, local)
			} else {
				s.out = f.appendCheckLoop(s.out, local)
			}
			checks++
		case opReturnCall, opReturnCallIndirect:
			s.copyTo(in.start)
			s.out = f.appendCheckLoop(s.out, local)
			checks++
		}
		if in.op.namesFunction() {
			m.checkFunction(r, immediate)
			s.moveFunction(immediate, f.moved)
		}
	})
	if err := r.finish(); err != nil {
		return nil, err
	}
	s.copyTo(len(s.src))
	if checks == 0 {
		return slices.Insert(s.out, len(out), r.buf[:expression]...), nil
	}
	return slices.Insert(s.out, len(out), declareLocal(r.buf[:expression])...), nil
}

// declareLocal returns the declarations of local variables with an i32 added.
func declareLocal(declarations []byte) []byte {
	r := &reader{buf: declarations}
	longer := appendU32(nil, r.u32()+1)
	longer = append(longer, declarations[r.pos:]...)
	return append(longer, 1, byte(I32))
}

// blockTakesNothing tells whether the block type that r is at has no
// parameters.
func (m *Module) blockTakesNothing(r *reader) bool {
	i := r.signed(33)
	// Negative numbers are the empty type and value types, others are indexes.
	return i < 0 || i < int64(len(m.types)) && len(m.types[i].params) == 0
}

// appendCheck appends a check that follows the header of a loop without
// parameters. The index of an i32 variable for its use is local. See the
// package's comment for why it has this form.
func (f fuel) appendCheck(b []byte, local uint32) []byte {
	b = appendU32(append(b, byte(opGlobalGet)), f.global)
	b = append(b, byte(opI32Const), 1, byte(opI32Sub))
	b = appendU32(append(b, byte(opLocalTee)), local)
	b = appendU32(append(b, byte(opGlobalSet)), f.global)
	b = appendU32(append(b, byte(opLocalGet)), local)
	b = append(b, byte(opI32Const), 0, byte(opI32GtS))
	b = append(b, byte(opIf), blockVoid, byte(opElse))
	b = appendU32(append(b, byte(opCall)), f.refill)
	return append(b, byte(opBr), 1, byte(opEnd))
}

// appendCheckLoop appends a check for a place that is not the header of a loop
// without parameters: it makes one.
func (f fuel) appendCheckLoop(b []byte, local uint32) []byte {
	b = append(b, byte(opLoop), blockVoid)
	return append(f.appendCheck(b, local), byte(opEnd))
}

// refillBody returns the body of the refill function. It resets the global
// before it yields, so that a host that leaves by a panic leaves no fuel at
// zero behind.
func (f fuel) refillBody(yield, interval uint32) []byte {
	b := []byte{0, byte(opI32Const)}    // no local variables
	b = appendS32(b, int32(interval)+1) // the check is passed once more
	b = appendU32(append(b, byte(opGlobalSet)), f.global)
	b = appendU32(append(b, byte(opCall)), yield)
	return append(b, byte(opEnd))
}

// appendBody appends an entry of the code section.
func appendBody(b, body []byte) []byte {
	return append(appendU32(b, uint32(len(body))), body...)
}
