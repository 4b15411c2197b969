package recorder

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	k8spluginv1alpha1 "github.com/healthscope/healthscope/apis/k8splugin/v1alpha1"
)

// emptyStatus is what rsync saves for a bundle whose status no monitor has written.
const emptyStatus = `{"ready":false,"resourceCount":0}`

// textOf returns the status of a bundle as it is saved, and its digest. The text is compact JSON, because EMCO's readers search it for words
// without parsing it.
func textOf(status json.RawMessage) (text, digest string, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, forEMCO(status)); err != nil && len(status) > 0 {
		return "", "", errors.Wrap(err, "cannot read the status of the bundle")
	}
	text = compact.String()
	if text == "" || text == "null" {
		text = emptyStatus
	}
	sum := sha256.Sum256([]byte(text))
	return text, hex.EncodeToString(sum[:]), nil
}

// truncate returns a status, marked as truncated, without its longest list of objects, or without resources if it has no list of objects
// any more. It returns false if there is nothing to remove.
func truncate(status string) (string, bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(status), &fields) != nil {
		return "", false
	}
	longest := ""
	for name := range new(k8spluginv1alpha1.ResourceBundleStateStatus).Lists() {
		if n := len(fields[name]); n > len(fields[longest]) || n > 0 && n == len(fields[longest]) && name < longest {
			longest = name
		}
	}
	longest = cmp.Or(longest, "resources")
	if len(fields[longest]) == 0 {
		return "", false
	}
	delete(fields, longest)
	fields["truncated"] = json.RawMessage("true")
	data, err := json.Marshal(fields)
	return string(data), err == nil
}
