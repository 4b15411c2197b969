package appcontext

import (
	"cmp"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// CompositeAppMeta says what a context was made for, in EMCO's spelling. Contexts of network intents and logical clouds
// may leave most of it empty; ONAP's EMCO knows the first five fields only.
type CompositeAppMeta struct {
	// Project, CompositeApp, Version and DeploymentIntentGroup name the deployment intent group; Release is its Helm release.
	Project               string
	CompositeApp          string
	Version               string
	Release               string
	DeploymentIntentGroup string
	// Namespace is where the resources go in the clusters.
	Namespace string
	// Level is the level of the logical cloud: "0" is that of the administrator.
	Level string
	// ChildContextIDs are contexts that belong to this one, for instance of certificates.
	ChildContextIDs []string
	// LogicalCloud is where the group is deployed to, with its namespace and level.
	LogicalCloud          string
	LogicalCloudNamespace string
	LogicalCloudLevel     string
	// CompositeProfile is the group's composite profile. EMCO does not write it, and passes over it.
	CompositeProfile string `json:",omitempty"`
	// CorrectDrift is true when fields that others have set are to be reset. EMCO neither writes nor reads it.
	CorrectDrift bool `json:",omitempty"`
	// Namespaces are other namespaces in which resources may be. EMCO neither writes nor reads it.
	Namespaces []string `json:",omitempty"`
	// Services is kept as it is, for the EMCO that writes it.
	Services json.RawMessage `json:"services,omitempty"`
}

// DeploymentRef returns the deployment intent group that the context was made for, and whether the meta data name one. Meta
// data from before there was a field for the group name it in the release.
func (m CompositeAppMeta) DeploymentRef() (DeploymentRef, bool) {
	s := GroupRef(m.Project, m.CompositeApp, m.Version, cmp.Or(m.DeploymentIntentGroup, m.Release))
	return s, s.check() == nil
}

// encode returns a value as EMCO stores it: in JSON as encoding/json writes it, with <, > and & escaped and without a
// newline. A string becomes a JSON string, also when it holds JSON.
func encode(value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return nil, &invalidError{"value", "nil", "must be a value"}
	case string:
		if !utf8.ValidString(v) {
			return nil, &invalidError{"value", v, "must be UTF-8: JSON can hold nothing else"}
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("%w: it is no JSON: %w", ErrInvalid, err)
	}
	return data, nil
}

// decode reads a stored value.
func decode(key string, data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %q: %w", ErrMalformed, key, err)
	}
	return nil
}

// decodeText returns a stored string, or the JSON text of another value.
func decodeText(key string, data []byte) (string, error) {
	if len(data) > 0 && data[0] == '"' {
		var text string
		err := decode(key, data, &text)
		return text, err
	}
	if !json.Valid(data) {
		return "", fmt.Errorf("%w: %q: it is not JSON", ErrMalformed, key)
	}
	return string(data), nil
}

// statusValue is how EMCO stores a state.
type statusValue struct {
	Status string
}
