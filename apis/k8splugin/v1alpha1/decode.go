package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// RawList is a JSON value that should be an array of objects, kept as it came:
// other programs write these lists, with nulls and with whatever their version
// of Kubernetes knew, and no reader may fail because of one of them.
type RawList []byte

// MarshalJSON returns the value as it is, or null when it is empty.
func (l RawList) MarshalJSON() ([]byte, error) {
	if len(l) == 0 {
		return []byte("null"), nil
	}
	return l, nil
}

// UnmarshalJSON keeps a copy of the value; null makes the list empty.
func (l *RawList) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		*l = nil
		return nil
	}
	*l = slices.Clone(data)
	return nil
}

// UnmarshalJSON decodes a spec and never fails on a field of the wrong type: a
// selector that cannot be read selects nothing.
func (s *ResourceBundleStateSpec) UnmarshalJSON(data []byte) error {
	*s = ResourceBundleStateSpec{}
	type plain ResourceBundleStateSpec
	var p plain
	if json.Unmarshal(data, &p) == nil {
		*s = ResourceBundleStateSpec(p)
	}
	return nil
}

// UnmarshalJSON decodes a status field by field. A field of the wrong type, and
// an entry of resources that cannot be read, stay empty and are named in
// Malformed. It fails on nothing but broken JSON.
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

// decodeFields is the slow path of UnmarshalJSON: it decodes what can be decoded and names the rest.
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
		s.Summary = nil // Half a summary would be taken for a whole one.
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

// Lists returns the lists of whole objects by their JSON names. The values
// point into s, so that a caller can fill or empty them.
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
