package scope

// Reasons of the condition Ready.
const (
	// ReasonHealthy means that enough members are healthy. It is also the reason of the event that tells so.
	ReasonHealthy = "Healthy"
	// ReasonMembersFailed means that too few members are healthy, and that one that counts is Failed.
	ReasonMembersFailed = "MembersFailed"
	// ReasonMembersPending means that too few members are healthy, and that none is Failed.
	ReasonMembersPending = "MembersPending"
	// ReasonRequiredAppMissing means that an app in rollup.required has no members.
	ReasonRequiredAppMissing = "RequiredAppMissing"
	// ReasonNoMembers means that the scope, or one of its apps, leads to nothing that counts.
	ReasonNoMembers = "NoMembers"
	// ReasonMembersUnknown means that only members that cannot be judged are in the way of healthy.
	ReasonMembersUnknown = "MembersUnknown"
	// ReasonTooManyKinds means the same, and that the scope refers to more kinds than are followed.
	ReasonTooManyKinds = "TooManyKinds"
	// ReasonReferenceCycle means the same, and that the scope refers to itself, directly or through other scopes.
	ReasonReferenceCycle = "ReferenceCycle"
)

// Reasons of the condition ClustersReachable. When it is False for clusters that the controller knows, the reason is the worst of their fleet.Reachability.
const (
	// ReasonAllReachable means that every cluster of the scope can be seen.
	ReasonAllReachable = "AllReachable"
	// ReasonClusterUnknown means that the scope speaks of a cluster that the controller does not know.
	ReasonClusterUnknown = "ClusterUnknown"
)

// ReasonSynced is the reason of the condition InventorySynced when it is True. The inventory gives the others.
const ReasonSynced = "Synced"

// ReasonOlderScope is the reason of the condition InventoryConflict: another scope, which is older, has the resource too.
const ReasonOlderScope = "OlderScope"

// ReasonInvalidExpression is the reason of the condition HealthChecksInvalid: a health check of the configuration is left out.
const ReasonInvalidExpression = "InvalidExpression"

// ReasonOtherController is the reason of the condition StatusContested: another controller writes the status too.
const ReasonOtherController = "OtherController"

// Reasons of events, besides ReasonHealthy.
const (
	// ReasonUnhealthy means that a scope has become unhealthy.
	ReasonUnhealthy = "Unhealthy"
	// ReasonHealthUnknown means that the health of a scope cannot be known any more.
	ReasonHealthUnknown = "HealthUnknown"
	// ReasonStatusContested means that another controller goes on writing the status of a scope.
	ReasonStatusContested = "StatusContested"
)
