package simulator

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Options say which A&AI is simulated. The zero value serves v24 to v32 without authentication, faithfully.
type Options struct {
	// BasePath is what every path of the API starts with, before /vN (schema.uri.base.path). Default: "/aai".
	BasePath string
	// Versions are the schema versions served, "v22" to "v32"; others answer 400 like on a real server whose
	// configuration lacks them (schema.version.list). Default: v24 to v32.
	Versions []string
	// DefaultVersion is what /aai/latest means, how Get and List see the inventory, and the version of events. Default:
	// the newest of Versions.
	DefaultVersion string
	// Users maps names to passwords for Basic authentication; requests without one of them get 403. Default: no check.
	Users map[string]string
	// Clock gives the time for resource-versions, events and the journal. Default: time.Now. Delays of faults use real
	// time.
	Clock func() time.Time
	// BulkLimit is how many operations a bulk request may hold (aai.bulkconsumer.payloadlimit). Default: 30.
	BulkLimit int
	// ReadTimeout is how long a GET may take, which it does only by Fault.Delay, before it is answered AAI_7406
	// (aai.crud.timeoutlimit). Default: 100 s.
	ReadTimeout time.Duration
	// ImpliedDelete lists, by application, the types whose PUT may delete child nodes by leaving them out; "*" stands for
	// all types (aai.implied.delete.whitelist). Applications are those of X-FromAppId in any case. Default: nobody may.
	ImpliedDelete map[string][]string
	// VersionOverride passes for any resource-version in a DELETE (aai.resourceversion.disabled.uuid). Default:
	// 38cf3090-6a0c-4e9d-8142-4332a7352846.
	VersionOverride string
	// ShallowEvents leaves children out of events (aai.notification.depth.all.enabled=false).
	ShallowEvents bool
	// OneSidedEvents sends no events for the other ends of relationships (aai.notification.both.sides.enabled=false).
	OneSidedEvents bool
	// Strict keeps a log of requests that a careful client would not send; the answers stay the same.
	Strict bool
	// Reject is Strict, and such requests are answered 400 AAI_3000 and do nothing.
	Reject bool
	// JournalSize bounds how many requests the journal remembers. Default: 10,000. Whatever the number, it holds no more
	// than 64 MiB of bodies.
	JournalSize int
	// EventLogSize bounds how many events are remembered. Default: 10,000. Whatever the number, they hold no more than
	// 131,072 nodes and relationships.
	EventLogSize int
}

const (
	readTimeout = 100 * time.Second
	logSize     = 10_000
)

// Validate reports what is wrong with the options.
func (o Options) Validate() error {
	if err := o.checkVersions(); err != nil {
		return err
	}
	if o.BasePath != "" && (o.BasePath[0] != '/' || strings.HasSuffix(o.BasePath, "/") || !canonicalPath(o.BasePath)) {
		return fmt.Errorf("base path %q is not of the form %q", o.BasePath, "/aai")
	}
	for _, name := range slices.Concat(slices.Collect(maps.Values(o.ImpliedDelete))...) {
		if name != "*" && typeNamed(name, newestSchema) == nil {
			return fmt.Errorf("implied delete names %q, which is no type of node", name)
		}
	}
	return o.checkNumbers()
}

func (o Options) checkVersions() error {
	for _, v := range append(slices.Clone(o.Versions), o.DefaultVersion) {
		if n, ok := schemaNumber(v); v != "" && (!ok || n < oldestSchema || n > newestSchema) {
			return fmt.Errorf("cannot serve schema version %q: known are v%d to v%d", v, oldestSchema, newestSchema)
		}
	}
	if o.DefaultVersion != "" && len(o.Versions) > 0 && !slices.Contains(o.Versions, o.DefaultVersion) {
		return fmt.Errorf("default version %q is not among the versions served, %q", o.DefaultVersion, o.Versions)
	}
	return nil
}

func (o Options) checkNumbers() error {
	switch {
	case o.BulkLimit < 0:
		return fmt.Errorf("bulk limit %d is negative", o.BulkLimit)
	case o.ReadTimeout < 0:
		return fmt.Errorf("read timeout %s is negative", o.ReadTimeout)
	case o.JournalSize < 0:
		return fmt.Errorf("journal size %d is negative", o.JournalSize)
	case o.EventLogSize < 0:
		return fmt.Errorf("event log size %d is negative", o.EventLogSize)
	}
	return nil
}
