package wasmbin

import "fmt"

// StripCustom drops the custom sections: names, debug information, notes of
// the tools that made the module.
func StripCustom(m *Module) {
	m.remove(isCustom)
}

func isCustom(s section) bool { return s.id == sectionCustom }

// StripData drops the data, data count and custom sections, for a module whose
// memory is filled by other means than its data segments. It fails, and leaves
// m as it is, if an instruction refers to a data segment or isn't known.
func StripData(m *Module) error {
	for i, r := range m.functionBodies() {
		r.locals()
		r.expression(func(in instruction) {
			if in.op == opMemoryInit || in.op == opDataDrop {
				r.fail(in.start, fmt.Errorf("opcode %v uses a data segment", in.op))
			}
		})
		if err := r.finish(); err != nil {
			return fmt.Errorf("wasmbin: strip data: function %d: %w", i, err)
		}
	}
	m.remove(func(s section) bool {
		return s.id == sectionData || s.id == sectionDataCount || isCustom(s)
	})
	return nil
}
