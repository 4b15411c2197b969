package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// RawList is a JSON value that should be an array of objects. It is stored unchanged, because other programs write these lists:
// they may contain nulls and the fields of any version of Kubernetes, and a reader must not fail because of one list.
type RawList []byte

// MarshalJSON returns the value unchanged, or null if it is empty.
func (l RawList) MarshalJSON() ([]byte, error) {
	if len(l) == 0 {
		return []byte("null"), nil
	}
	return l, nil
}

// UnmarshalJSON stores a copy of the value. For null, the list is empty.
func (l *RawList) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		*l = nil
		return nil
	}
	*l = slices.Clone(data)
	return nil
}

// UnmarshalJSON decodes a spec. It does not fail on a field of the wrong type: without a valid selector, the spec selects nothing.
func (s *ResourceBundleStateSpec) UnmarshalJSON(data []byte) error {
	*s = ResourceBundleStateSpec{}
	type plain ResourceBundleStateSpec
	var p plain
	if json.Unmarshal(data, &p) == nil {
		*s = ResourceBundleStateSpec(p)
	}
	return nil
}

// UnmarshalJSON decodes a status. If that fails, it decodes field by field: it leaves out fields of the wrong type, and entries of
// resources that cannot be read, and adds the names of these fields to Malformed. It returns an error only for invalid JSON.
func (s *ResourceBundleStateStatus) UnmarshalJSON(data []byte) error {
	*s = ResourceBundleStateStatus{}
	type plain ResourceBundleStateStatus
	var p plain
	if json.Unmarshal(data, &p) == nil {
		*s = ResourceBundleStateStatus(p)
		return nil
	}
	if !json.Valid(data) {
		return errors.New("cannot read the status of a ResourceBundleState: it is not JSON")
	}
	s.decodeFields(data)
	return nil
}

// decodeFields is the slow path of UnmarshalJSON. It decodes the fields that can be decoded, and adds the names of the others to
// Malformed.
func (s *ResourceBundleStateStatus) decodeFields(data []byte) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		s.Malformed = []string{"status"}
		return
	}
	targets := map[string]any{
		"ready": &s.Ready, "resourceCount": &s.ResourceCount, "summary": &s.Summary, "truncated": &s.Truncated,
	}
	for name, list := range s.Lists() {
		targets[name] = list
	}
	for name, target := range targets {
		if raw, ok := fields[name]; ok && json.Unmarshal(raw, target) != nil {
			s.Malformed = append(s.Malformed, name)
		}
	}
	if slices.Contains(s.Malformed, "summary") {
		s.Summary = nil // Readers would take a partial summary for a complete one.
	}
	if raw, ok := fields["resources"]; ok {
		var entries []json.RawMessage
		bad := json.Unmarshal(raw, &entries) != nil
		for _, entry := range entries {
			var r ResourceHealth
			if json.Unmarshal(entry, &r) != nil {
				bad = true
				continue
			}
			s.Resources = append(s.Resources, r)
		}
		if bad {
			s.Malformed = append(s.Malformed, "resources")
		}
	}
	slices.Sort(s.Malformed)
}

// Lists returns pointers to the lists of whole objects in s, by their JSON names.
func (s *ResourceBundleStateStatus) Lists() map[string]*RawList {
	return map[string]*RawList{
		"podStatuses":         &s.PodStatuses,
		"serviceStatuses":     &s.ServiceStatuses,
		"configMapStatuses":   &s.ConfigMapStatuses,
		"deploymentStatuses":  &s.DeploymentStatuses,
		"secretStatuses":      &s.SecretStatuses,
		"daemonSetStatuses":   &s.DaemonSetStatuses,
		"ingressStatuses":     &s.IngressStatuses,
		"jobStatuses":         &s.JobStatuses,
		"statefulSetStatuses": &s.StatefulSetStatuses,
		"csrStatuses":         &s.CSRStatuses,
		"resourceStatuses":    &s.ResourceStatuses,
	}
}
