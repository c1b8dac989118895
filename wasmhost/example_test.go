package wasmhost_test

import (
	"context"
	"fmt"
	"log"

	"codeexec/wasmhost"
)

// A Python sandbox for Go programs.
func Example() {
	ctx := context.Background()
	engine, err := wasmhost.New(ctx, wasmhost.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close(ctx)
	session, err := engine.NewSession(ctx, wasmhost.SessionOptions{})
	if err != nil {
		log.Fatal(err)
	}
	result, err := session.Run(ctx, wasmhost.Request{Code: "print('hello from Python')\n6 * 7"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(result.Stdout, result.Value)
	// Output:
	// hello from Python
	// 42
}
