package scope

// Reason says in one CamelCase word why a condition of a HealthScope has its status, or why an event is made. Besides those below, the values of
// fleet.Reachability are reasons of the condition ClustersReachable. Explanations and Events say what each means.
type Reason string

// Reasons of the condition Ready. ReasonHealthy is also that of an event, and ReasonMembersFailed that of the condition Stalled.
const (
	ReasonHealthy            Reason = "Healthy"
	ReasonMembersFailed      Reason = "MembersFailed"
	ReasonMembersPending     Reason = "MembersPending"
	ReasonRequiredAppMissing Reason = "RequiredAppMissing"
	ReasonNoMembers          Reason = "NoMembers"
	ReasonMembersUnknown     Reason = "MembersUnknown"
	ReasonTooManyKinds       Reason = "TooManyKinds"
	ReasonReferenceCycle     Reason = "ReferenceCycle"
)

// Reasons of the condition ClustersReachable. ReasonClusterUnknown is worse than any fleet.Reachability.
const (
	ReasonAllReachable   Reason = "AllReachable"
	ReasonClusterUnknown Reason = "ClusterUnknown"
)

// Reasons of the condition InventorySynced. All but ReasonSynced are given by the inventory.
const (
	ReasonSynced        Reason = "Synced"
	ReasonMisconfigured Reason = "Misconfigured"
	ReasonUnavailable   Reason = "Unavailable"
	ReasonRefused       Reason = "Refused"
	ReasonPending       Reason = "Pending"
	ReasonNotListed     Reason = "NotListed"
	ReasonNoRegion      Reason = "NoRegion"
	ReasonLinkDenied    Reason = "LinkDenied"
)

// Reasons of the conditions that are there only when something is the matter.
const (
	ReasonOlderScope        Reason = "OlderScope"
	ReasonInvalidExpression Reason = "InvalidExpression"
	ReasonOtherController   Reason = "OtherController"
)

// Reasons of events, besides ReasonHealthy.
const (
	ReasonUnhealthy     Reason = "Unhealthy"
	ReasonHealthUnknown Reason = "HealthUnknown"
)
