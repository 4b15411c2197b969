package appcontext

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
	ConnectivityAvailable Connectivity = "Available"
	ConnectivityRetrying  Connectivity = "Retrying"
)

// ActionState is what a user did with a deployment intent group, with the network intents of a cluster, or with a logical
// cloud. It is no outcome: that is the State of the context. Words that are not among the constants are kept as they are.
type ActionState string

// The actions.
const (
	ActionCreated            ActionState = "Created"
	ActionApproved           ActionState = "Approved"
	ActionApplied            ActionState = "Applied"
	ActionInstantiated       ActionState = "Instantiated"
	ActionUpdated            ActionState = "Updated"
	ActionTerminated         ActionState = "Terminated"
	ActionInstantiateStopped ActionState = "InstantiateStopped"
	ActionTerminateStopped   ActionState = "TerminateStopped"
)
