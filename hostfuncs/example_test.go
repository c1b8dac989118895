package hostfuncs_test

import (
	"fmt"

	"codeexec/hostfuncs"
)

// A picture travels beside the JSON that describes it.
func ExampleFrame() {
	frame := hostfuncs.Frame{
		Header:      []byte(`{"mimeType":"image/png","data":{"attachment":0}}`),
		Attachments: [][]byte{{0x89, 'P', 'N', 'G'}},
	}
	encoded := frame.Append(nil)

	decoded, err := hostfuncs.ParseFrame(encoded)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d bytes: %s, %q\n", len(encoded), decoded.Header, decoded.Attachments)

	_, err = hostfuncs.ParseFrame(encoded[:len(encoded)-1])
	fmt.Println(err)
	// Output:
	// 60 bytes: {"mimeType":"image/png","data":{"attachment":0}}, ["\x89PNG"]
	// frame of 59 bytes: attachment 0: has a length of 4 bytes, but 3 are left
}
