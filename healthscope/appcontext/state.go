package appcontext

import "slices"

// State is the state of a context, as rsync keeps it. Words that are not among the constants are kept as they are.
type State string

// The states of a context. The first six are those of EMCO's design; the others came with updates and rollbacks.
const (
	StateInstantiating     State = "Instantiating"
	StateInstantiated      State = "Instantiated"
	StateInstantiateFailed State = "InstantiateFailed"
	StateTerminating       State = "Terminating"
	StateTerminated        State = "Terminated"
	StateTerminateFailed   State = "TerminateFailed"
	StateCreated           State = "Created"
	StateUpdating          State = "Updating"
	StateUpdated           State = "Updated"
	// StateUpdateFailed is spelled as EMCO spells it.
	StateUpdateFailed State = "UpdatedFailed"
)

// ResourceStatus is what rsync did with a resource, which says nothing about how the resource fares. Words that are not
// among the constants are kept as they are.
type ResourceStatus string

// The states of a resource.
const (
	ResourcePending  ResourceStatus = "Pending"
	ResourceApplied  ResourceStatus = "Applied"
	ResourceFailed   ResourceStatus = "Failed"
	ResourceRetrying ResourceStatus = "Retrying"
	// ResourceDeleted is called Terminated in EMCO's design, and Deleted in what EMCO writes and answers.
	ResourceDeleted ResourceStatus = "Deleted"
)

// Connectivity is how rsync found a cluster when it last did something there. Words that are not among the constants are
// kept as they are.
type Connectivity string

// The connectivities of a cluster.
const (
	ConnectivityUnknown   Connectivity = "Unknown"
	ConnectivityAvailable Connectivity = "Available"
	ConnectivityRetrying  Connectivity = "Retrying"
)

// ActionState is what a user did with a deployment intent group, with the network intents of a cluster, or with a logical
// cloud. It is no outcome: that is the State of the context. Words that are not among the constants are kept as they are.
type ActionState string

// The actions.
const (
	ActionUndefined          ActionState = "Undefined"
	ActionCreated            ActionState = "Created"
	ActionApproved           ActionState = "Approved"
	ActionApplied            ActionState = "Applied"
	ActionInstantiated       ActionState = "Instantiated"
	ActionUpdated            ActionState = "Updated"
	ActionTerminated         ActionState = "Terminated"
	ActionInstantiateStopped ActionState = "InstantiateStopped"
	ActionTerminateStopped   ActionState = "TerminateStopped"
)

// transitions say which words may follow a word. The empty word is the beginning, before anything was written.
type transitions[T ~string] map[T][]T

// stateTransitions: terminating begins from any state in which something may be in a cluster, directly or after the running
// sequence was shut down; a context that failed, or was terminated, can be instantiated again.
var stateTransitions = transitions[State]{
	"":                     {StateCreated, StateInstantiating},
	StateCreated:           {StateInstantiating, StateUpdating, StateTerminating},
	StateInstantiating:     {StateInstantiated, StateInstantiateFailed, StateTerminating},
	StateInstantiated:      {StateUpdating, StateTerminating, StateInstantiating},
	StateInstantiateFailed: {StateInstantiating, StateUpdating, StateTerminating},
	StateUpdating:          {StateUpdated, StateUpdateFailed, StateInstantiated, StateTerminating},
	StateUpdated:           {StateUpdating, StateTerminating, StateInstantiating},
	StateUpdateFailed:      {StateUpdating, StateTerminating, StateInstantiating},
	StateTerminating:       {StateTerminated, StateTerminateFailed, StateInstantiating},
	StateTerminated:        {StateInstantiating},
	StateTerminateFailed:   {StateTerminating, StateInstantiating},
}

// resourceTransitions: a resource is tried again until it is applied, deleted, or given up.
var resourceTransitions = transitions[ResourceStatus]{
	"":               {ResourcePending},
	ResourcePending:  {ResourceApplied, ResourceFailed, ResourceRetrying, ResourceDeleted},
	ResourceRetrying: {ResourceApplied, ResourceFailed, ResourceDeleted, ResourcePending},
	ResourceApplied:  {ResourceDeleted, ResourceFailed, ResourceRetrying, ResourcePending},
	ResourceFailed:   {ResourcePending, ResourceRetrying, ResourceApplied, ResourceDeleted},
	ResourceDeleted:  {ResourcePending, ResourceApplied, ResourceFailed, ResourceRetrying},
}

// actionTransitions: a group is created, approved and instantiated, a cluster's network intents are created and applied, a
// logical cloud is created and instantiated.
var actionTransitions = transitions[ActionState]{
	"":                       {ActionCreated},
	ActionUndefined:          {ActionCreated},
	ActionCreated:            {ActionApproved, ActionApplied, ActionInstantiated},
	ActionApproved:           {ActionInstantiated, ActionApproved},
	ActionApplied:            {ActionTerminated, ActionApplied},
	ActionInstantiated:       {ActionTerminated, ActionInstantiateStopped, ActionUpdated},
	ActionUpdated:            {ActionInstantiated},
	ActionTerminated:         {ActionApproved, ActionInstantiated, ActionApplied, ActionTerminateStopped},
	ActionInstantiateStopped: {ActionInstantiated, ActionTerminated, ActionApproved},
	ActionTerminateStopped:   {ActionTerminated},
}

// allow says whether to may follow from. A word may always follow itself, and nothing is known about unknown words, so
// that they may follow and be followed by everything.
func (t transitions[T]) allow(from, to T) bool {
	_, knownFrom := t[from]
	_, knownTo := t[to]
	return from == to || !knownFrom || !knownTo || slices.Contains(t[from], to)
}

// known says whether the word is one of the table's.
func (t transitions[T]) known(word T) bool {
	_, ok := t[word]
	return ok && word != ""
}

// CanTransition says whether a context may go from one state to another; the empty state is the beginning. Unknown words,
// from an EMCO to come, may go anywhere.
func (s State) CanTransition(to State) bool { return stateTransitions.allow(s, to) }

// Known says whether the state is one of the constants.
func (s State) Known() bool { return stateTransitions.known(s) }

// Moving says whether the state is on its way to another by itself.
func (s State) Moving() bool {
	return s == StateInstantiating || s == StateUpdating || s == StateTerminating
}

// CanTransition says whether a resource may go from one state to another; the empty state is the beginning.
func (s ResourceStatus) CanTransition(to ResourceStatus) bool {
	return resourceTransitions.allow(s, to)
}

// Known says whether the state is one of the constants.
func (s ResourceStatus) Known() bool { return resourceTransitions.known(s) }

// CanTransition says whether an action may follow another; the empty action is the beginning.
func (s ActionState) CanTransition(to ActionState) bool { return actionTransitions.allow(s, to) }

// Known says whether the action is one of the constants.
func (s ActionState) Known() bool { return actionTransitions.known(s) }
