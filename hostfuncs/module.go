package hostfuncs

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// ModuleName is the name under which guests import the functions of this package.
const ModuleName = "codeexec"

// Instantiate makes the module available to the guests of a runtime. It is needed once per runtime, before the first
// guest; it fails if the runtime already has a module of that name or is closed. The module lives as long as the runtime.
func Instantiate(ctx context.Context, rt wazero.Runtime) error {
	const (
		i32 = api.ValueTypeI32
		i64 = api.ValueTypeI64
	)
	type types = []api.ValueType
	imports := []struct {
		name       string
		params     types
		paramNames []string
		fn         importFunc
	}{
		{"submit", types{i32, i32}, []string{"ptr", "len"}, func(r *run, mem api.Memory, p []uint64) int32 {
			return r.submit(mem, api.DecodeU32(p[0]), api.DecodeU32(p[1]))
		}},
		{"wait", types{i32, i64}, []string{"id", "timeout_ns"}, func(r *run, _ api.Memory, p []uint64) int32 {
			return r.wait(api.DecodeI32(p[0]), time.Duration(p[1]))
		}},
		{"size", types{i32}, []string{"id"}, func(r *run, _ api.Memory, p []uint64) int32 {
			return r.size(api.DecodeI32(p[0]))
		}},
		{"read", types{i32, i32, i32}, []string{"id", "ptr", "len"}, func(r *run, mem api.Memory, p []uint64) int32 {
			return r.read(mem, api.DecodeI32(p[0]), api.DecodeU32(p[1]), api.DecodeU32(p[2]))
		}},
		{"cancel", types{i32}, []string{"id"}, func(r *run, _ api.Memory, p []uint64) int32 {
			return r.drop(api.DecodeI32(p[0]))
		}},
		{"write", types{i32, i32, i32}, []string{"kind", "ptr", "len"}, func(r *run, mem api.Memory, p []uint64) int32 {
			return r.write(mem, OutputKind(api.DecodeI32(p[0])), api.DecodeU32(p[1]), api.DecodeU32(p[2]))
		}},
	}
	module := rt.NewHostModuleBuilder(ModuleName)
	for _, imp := range imports {
		module.NewFunctionBuilder().
			WithName(imp.name).
			WithParameterNames(imp.paramNames...).
			WithGoModuleFunction(imp.fn.bind(imp.name), imp.params, types{i32}).
			Export(imp.name)
	}
	module.NewFunctionBuilder().WithName("yield").WithGoModuleFunction(api.GoModuleFunc(yield), nil, nil).Export("yield")
	if _, err := module.Instantiate(ctx); err != nil {
		return fmt.Errorf("instantiating the host module %q: %w", ModuleName, err)
	}
	return nil
}

// An importFunc is an import that works on the guest's present run: it takes its parameters from p and returns its
// result or a code.
type importFunc func(r *run, mem api.Memory, p []uint64) int32

// bind makes fn an import: it finds the run by the context of the guest's call.
func (fn importFunc) bind(name string) api.GoModuleFunc {
	return func(ctx context.Context, guest api.Module, stack []uint64) {
		r := instanceOf(ctx, name).run.Load()
		stack[0] = api.EncodeI32(fn(r, guest.Memory(), stack))
	}
}

// yield is the import without parameters and result.
func yield(ctx context.Context, _ api.Module, _ []uint64) {
	i := instanceOf(ctx, "yield")
	if i.opts.Yield == nil {
		runtime.Gosched()
		return
	}
	if err := i.opts.Yield(); err != nil {
		panic(err) // wazero unwinds the guest and returns it, wrapped, from the call
	}
}

// instanceOf returns the instance that the context of a call into the guest carries. Where there is none it panics, which
// makes that call fail: it is not the guest's fault but a mistake of the host.
func instanceOf(ctx context.Context, name string) *Instance {
	i, ok := ctx.Value(instanceKey{}).(*Instance)
	if !ok {
		panic(fmt.Errorf("import %s.%s: the context of the call into the guest carries no instance; make it with Instance.Context",
			ModuleName, name))
	}
	return i
}
