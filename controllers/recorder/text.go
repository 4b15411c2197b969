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

// unreported is what rsync saves of a bundle that no monitor has reported on.
const unreported = `{"ready":false,"resourceCount":0}`

// textOf returns the status of a bundle as it is saved, for EMCO's readers and in compact JSON because they look for words in it without parsing it, and a digest of it.
func textOf(status json.RawMessage) (text, digest string, err error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, forEMCO(status)); err != nil && len(status) > 0 {
		return "", "", errors.Wrap(err, "cannot read the status of the bundle")
	}
	text = compact.String()
	if text == "" || text == "null" {
		text = unreported
	}
	sum := sha256.Sum256([]byte(text))
	return text, hex.EncodeToString(sum[:]), nil
}

// truncate returns a status without the longest of its lists of objects, or without resources when there is no such list
// any more, and marked as truncated. It returns false when there is nothing to leave out.
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
