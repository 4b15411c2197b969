package api

import (
	"bytes"
	_ "embed" // For openapi.json.
	"encoding/json"
)

// openAPI describes the server in OpenAPI 3.1. It is generated from Operations and the types of the responses; tests validate all responses
// against it.
//
//go:embed openapi.json
var openAPI []byte

// versionInOpenAPI is the only place in openapi.json with the version of the program.
const versionInOpenAPI = `"version": "devel"`

// openAPIWithVersion returns openapi.json with the version of the program filled in.
func openAPIWithVersion(version string) json.RawMessage {
	if version == "" {
		return openAPI
	}
	quoted, _ := encode(version) // A string can always be encoded.
	return bytes.Replace(openAPI, []byte(versionInOpenAPI), append([]byte(`"version": `), quoted...), 1)
}
