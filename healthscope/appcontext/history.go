package appcontext

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Action is an entry of a history: what a user did, and the context that came of it.
type Action struct {
	// State is what the user did.
	State ActionState `json:"state"`
	// ContextID is the context that the action made or was about; empty for actions without one, such as Created.
	ContextID string `json:"instance"`
	// Time is when. It is kept in milliseconds, in UTC.
	Time time.Time `json:"time"`
	// Revision counts what a group was instantiated with: 0 before, 1 on instantiation, one more with each update or rollback.
	Revision int64 `json:"revision"`
}

// StateInfo is the history of a subject: EMCO's stateInfo, in its JSON.
type StateInfo struct {
	// StatusContextID is the context under which bundles and states are kept; empty when that is not recorded.
	StatusContextID string `json:"statusctxid"`
	// Actions are in the order in which they were recorded.
	Actions []Action `json:"actions"`
}

// Record is an action on a subject, to be written together with the change that it describes.
type Record struct {
	Subject DeploymentRef
	Action  Action
	// StatusContextID, if set, replaces the one of the history.
	StatusContextID string
}

// historyHead is the value at the key of a subject's history.
type historyHead struct {
	StatusContextID string `json:"statusctxid"`
	// Actions is how many there are: the next has this number.
	Actions int `json:"actions"`
}

const (
	// duplicateWindow is how many of the last actions are compared with a new one, to detect that it is recorded already.
	duplicateWindow = 16
	// timeLayout is how EMCO writes times.
	timeLayout = "2006-01-02T15:04:05.000Z"
)

// MarshalJSON writes the action as EMCO does, with milliseconds.
func (a Action) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		State     ActionState `json:"state"`
		ContextID string      `json:"instance"`
		Time      string      `json:"time"`
		Revision  int64       `json:"revision"`
	}{a.State, a.ContextID, a.Time.UTC().Format(timeLayout), a.Revision})
}

// equal reports whether two actions have the same stored form.
func (a Action) equal(b Action) bool {
	return a.State == b.State && a.ContextID == b.ContextID && a.Revision == b.Revision && a.Time.UnixMilli() == b.Time.UnixMilli()
}

func (r Record) check() error {
	switch {
	case r.Action.State == "":
		return &invalidError{"action state", "", "must not be empty"}
	case r.Action.Time.IsZero():
		return &invalidError{"action time", "", "must be set"}
	case r.Action.Revision < 0:
		return &invalidError{"action revision", strconv.FormatInt(r.Action.Revision, 10), "must not be negative"}
	}
	for _, id := range []string{r.Action.ContextID, r.StatusContextID} {
		if id == "" {
			continue
		}
		if err := checkName("context id", id); err != nil {
			return err
		}
	}
	return r.Subject.check()
}

// actionKey returns the key of an action. The digits make etcd's order that of the numbers.
func actionKey(s DeploymentRef, number int) string {
	return s.key(ownAction, fmt.Sprintf("%010d", number))
}

// RecordAction appends an action to the history of its subject and, if it names a context, which must be there, enters
// that in the subject's index, all at once. An action that is among the last sixteen already is not recorded again, so
// that a caller who got no answer can retry. RecordAction retries on a conflict with another record, within the deadline of
// one call.
func (s *Store) RecordAction(ctx context.Context, r Record) error {
	callCtx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	err := error(ErrConflict)
	for errors.Is(err, ErrConflict) {
		t := &transaction{}
		if r.Action.ContextID != "" {
			t.require(string(ContextHandle(r.Action.ContextID)))
		}
		if err = s.addRecord(callCtx, t, r); err == nil && len(t.operations) > 0 {
			err = s.commit(callCtx, t)
		}
	}
	return wrapRecordError(r, translate(ctx, err))
}

// wrapRecordError prefixes an error with the action that could not be recorded.
func wrapRecordError(r Record, err error) error {
	return wrap(fmt.Sprintf("cannot record action %q of %q", r.Action.State, r.Subject), err)
}

// addRecord adds a record to a transaction, unless it is there already.
func (s *Store) addRecord(ctx context.Context, t *transaction, r Record) error {
	if err := r.check(); err != nil {
		return err
	}
	key := r.Subject.key()
	results, err := s.readEach(ctx, []clientv3.Op{
		clientv3.OpGet(key),
		clientv3.OpGet(r.Subject.key(ownAction), clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByKey, clientv3.SortDescend), clientv3.WithLimit(duplicateWindow)),
	})
	if err != nil {
		return err
	}
	var h historyHead
	var revision int64
	for _, kv := range results[0].Kvs {
		revision = kv.ModRevision
		if err := decode(key, kv.Value, &h); err != nil {
			return err
		}
	}
	for _, kv := range results[1].Kvs {
		var a Action
		if err := decode(string(kv.Key), kv.Value, &a); err == nil && a.equal(r.Action) {
			return nil
		}
	}
	t.requireRevision(key, revision)
	t.put(actionKey(r.Subject, h.Actions), r.Action)
	h.Actions++
	if r.StatusContextID != "" {
		h.StatusContextID = r.StatusContextID
	}
	t.put(key, h)
	if id := r.Action.ContextID; id != "" {
		t.index(r.Subject, id)
	}
	return nil
}

// index enters a context in the index of a subject.
func (t *transaction) index(s DeploymentRef, id string) {
	t.put(s.key(ownContext, id), id)
	t.put(s.backReferenceKey(id), id)
}

// GetStateInfo returns the history of a subject. One without a history has no actions.
func (s *Store) GetStateInfo(ctx context.Context, subject DeploymentRef) (StateInfo, error) {
	operation := fmt.Sprintf("cannot read history of %q", subject)
	if err := subject.check(); err != nil {
		return StateInfo{}, wrap(operation, err)
	}
	values, _, err := s.read(ctx, subject.key(), clientv3.WithPrefix())
	if err != nil {
		return StateInfo{}, wrap(operation, err)
	}
	record, err := parseSubject(values)
	return record.info, wrap(operation, err)
}

// subjectRecord is what is kept of a subject.
type subjectRecord struct {
	info StateInfo
	// contexts are the ids in the index, in the order in which they were entered.
	contexts []string
}

func (r subjectRecord) isEmpty() bool { return len(r.contexts) == 0 && len(r.info.Actions) == 0 }

// lastContextID returns the id of the context of the last action with one; empty when there is none.
func (i StateInfo) lastContextID() string {
	for _, a := range slices.Backward(i.Actions) {
		if a.ContextID != "" {
			return a.ContextID
		}
	}
	return ""
}

// parseSubject reads what is kept of a subject. The values are in the order of their keys.
func parseSubject(values []*mvccpb.KeyValue) (subjectRecord, error) {
	var record subjectRecord
	entered := map[string]int64{}
	for _, kv := range values {
		key := string(kv.Key)
		_, below, _ := subjectOf(key[len(ownPrefix):])
		switch {
		case len(below) == 0:
			var h historyHead
			if err := decode(key, kv.Value, &h); err != nil {
				return record, err
			}
			record.info.StatusContextID = h.StatusContextID
		case len(below) == 2 && below[0] == ownAction:
			var a Action
			if err := decode(key, kv.Value, &a); err != nil {
				return record, err
			}
			record.info.Actions = append(record.info.Actions, a)
		case len(below) == 2 && below[0] == ownContext:
			entered[below[1]] = kv.CreateRevision
			record.contexts = append(record.contexts, below[1])
		}
	}
	slices.SortStableFunc(record.contexts, func(a, b string) int { return cmp.Compare(entered[a], entered[b]) })
	return record, nil
}
