package api

import (
	"bytes"
	_ "embed" // For openapi.json.
	"encoding/json"
)

// openAPI describes what is served, in OpenAPI 3.1. It is generated from Operations and from the types of the answers; tests compare it with
// every answer they get.
//
//go:embed openapi.json
var openAPI []byte

// versionInOpenAPI is the one place of openapi.json that says the version of the program.
const versionInOpenAPI = `"version": "devel"`

// openAPIWithVersion returns openapi.json with the version of the program filled in.
func openAPIWithVersion(version string) json.RawMessage {
	if version == "" {
		return openAPI
	}
	quoted, _ := encode(version) // A string can always be encoded.
	return bytes.Replace(openAPI, []byte(versionInOpenAPI), append([]byte(`"version": `), quoted...), 1)
}
