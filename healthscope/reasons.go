package healthscope

// Reason says in one CamelCase word why an object is in its state. Reasons made
// by this project are the constants below; reasons that Kubernetes itself gives,
// such as CrashLoopBackOff or Evicted, are passed on as they are.
type Reason string

// Reasons that several rules, or Judge, give.
const (
	// ReasonNotObserved means that the controller of the object has not written a status yet, or that no monitor has.
	ReasonNotObserved Reason = "NotObserved"
	// ReasonNotListed means that a resource is expected and may be among those that its bundle has no room to name.
	ReasonNotListed Reason = "NotListed"
	// ReasonStaleGeneration means that the status speaks of an older spec.
	ReasonStaleGeneration Reason = "StaleGeneration"
	// ReasonDeleting means that the object is being deleted.
	ReasonDeleting Reason = "Deleting"
	// ReasonRolloutInProgress means that a rollout or a scaling is under way.
	ReasonRolloutInProgress Reason = "RolloutInProgress"
	// ReasonReplicasNotReady means that fewer replicas are ready than are wanted.
	ReasonReplicasNotReady Reason = "ReplicasNotReady"
	// ReasonProgressDeadlineExceeded means that a rollout did not finish in its time.
	ReasonProgressDeadlineExceeded Reason = "ProgressDeadlineExceeded"
	// ReasonReplicaFailure means that pods cannot be created, mostly for lack of quota.
	ReasonReplicaFailure Reason = "ReplicaFailure"
	// ReasonPaused means that rollouts are paused.
	ReasonPaused Reason = "Paused"
	// ReasonContainersNotReady means that a container of a pod is not ready. On a Ready pod it is a warning about a sidecar, an init container that keeps running.
	ReasonContainersNotReady Reason = "ContainersNotReady"
	// ReasonReadinessGatesNotReady means that all containers are ready and a readiness gate is not.
	ReasonReadinessGatesNotReady Reason = "ReadinessGatesNotReady"
	// ReasonUnschedulable means that no node can take the pod.
	ReasonUnschedulable Reason = "Unschedulable"
	// ReasonNodeLost means that the node of a pod no longer reports, so that what its status says of containers is old.
	ReasonNodeLost Reason = "NodeLost"
	// ReasonUnknownPhase means that the object is in a phase that its rule does not know.
	ReasonUnknownPhase Reason = "UnknownPhase"
	// ReasonCompleted means that all containers of a pod, or all pods of a Job, have ended well.
	ReasonCompleted Reason = "Completed"
	// ReasonRunning means that a Job has not ended yet.
	ReasonRunning Reason = "Running"
	// ReasonJobFailed means that a Job has failed and does not try again.
	ReasonJobFailed Reason = "JobFailed"
	// ReasonSuspended means that the object is suspended, or switched off, by its owner's wish.
	ReasonSuspended Reason = "Suspended"
	// ReasonPodFailed means that a pod has failed without saying why.
	ReasonPodFailed Reason = "PodFailed"
	// ReasonLoadBalancerPending means that a Service of type LoadBalancer has no address yet.
	ReasonLoadBalancerPending Reason = "LoadBalancerPending"
	// ReasonNoAddress means that no controller has given an Ingress or a Gateway an address.
	ReasonNoAddress Reason = "NoAddress"
	// ReasonClaimPending means that no volume is bound to a PersistentVolumeClaim yet.
	ReasonClaimPending Reason = "ClaimPending"
	// ReasonClaimLost means that the volume of a PersistentVolumeClaim is gone.
	ReasonClaimLost Reason = "ClaimLost"
	// ReasonExists means that the kind has no health of its own: it is enough that the object exists.
	ReasonExists Reason = "Exists"
	// ReasonInvalidObject means that the object cannot be read as its kind.
	ReasonInvalidObject Reason = "InvalidObject"
	// ReasonReadyFalse means that the object's condition Ready is False.
	ReasonReadyFalse Reason = "ReadyFalse"
	// ReasonReadyUnknown means that the object's condition Ready is neither True nor False.
	ReasonReadyUnknown Reason = "ReadyUnknown"
	// ReasonReconciling means that the object's condition Reconciling is True.
	ReasonReconciling Reason = "Reconciling"
	// ReasonStalled means that the object's condition Stalled is True.
	ReasonStalled Reason = "Stalled"
	// ReasonInProgress means that the object's controller is at work on it.
	ReasonInProgress Reason = "InProgress"
	// ReasonFailed means that the object's controller says that it has failed.
	ReasonFailed Reason = "Failed"

	// ReasonPendingTimeout means that the object was Pending for longer than is allowed.
	ReasonPendingTimeout Reason = "PendingTimeout"
	// ReasonNotFound means that the object is expected and does not exist.
	ReasonNotFound Reason = "NotFound"
	// ReasonNoResources means that the bundle is there and has no resource in it.
	ReasonNoResources Reason = "NoResources"
	// ReasonForbidden means that the controller may not read the object.
	ReasonForbidden Reason = "Forbidden"
	// ReasonKindNotFound means that the cluster does not serve the kind.
	ReasonKindNotFound Reason = "KindNotFound"
	// ReasonCrossNamespace means that a reference leads to another namespace, which is not followed.
	ReasonCrossNamespace Reason = "CrossNamespace"
	// ReasonInvalidReference means that a reference lacks a field or holds a value that cannot be.
	ReasonInvalidReference Reason = "InvalidReference"
	// ReasonTooManyKinds means that a scope refers to more kinds than are followed, and this one is not.
	ReasonTooManyKinds Reason = "TooManyKinds"
	// ReasonReferenceCycle means that a reference to a HealthScope leads back to the scope that has it.
	ReasonReferenceCycle Reason = "ReferenceCycle"
	// ReasonClusterExcluded means that a scope speaks of bundles in a cluster that it does not take bundles from.
	ReasonClusterExcluded Reason = "ClusterExcluded"
	// ReasonUnknownCluster means that a reference leads to a cluster that is not known.
	ReasonUnknownCluster Reason = "UnknownCluster"
	// ReasonNotSynced means that the objects of the kind have not been read yet.
	ReasonNotSynced Reason = "NotSynced"
	// ReasonClusterConnecting means that the object's cluster has not been read since the controller started.
	ReasonClusterConnecting Reason = "ClusterConnecting"
	// ReasonClusterUnreachable means that the API server of the object's cluster does not answer.
	ReasonClusterUnreachable Reason = "ClusterUnreachable"
	// ReasonClusterForbidden means that the controller may not read the object's cluster.
	ReasonClusterForbidden Reason = "ClusterForbidden"
	// ReasonClusterRefused means that the kubeconfig of the object's cluster is refused.
	ReasonClusterRefused Reason = "ClusterRefused"
	// ReasonClusterOverBudget means that the object's cluster takes more of the hub's memory than it may, and has been cut off.
	ReasonClusterOverBudget Reason = "ClusterOverBudget"
	// ReasonMonitorMissing means that no monitor runs in the object's cluster any more, or that it does not serve bundles.
	ReasonMonitorMissing Reason = "MonitorMissing"
	// ReasonMonitorStale means that the monitor of the object's cluster does not renew its Lease.
	ReasonMonitorStale Reason = "MonitorStale"
	// ReasonMalformedBundle means that parts of a bundle cannot be read.
	ReasonMalformedBundle Reason = "MalformedBundle"

	// ReasonHealthCheckInProgress means that the expression inProgress of a user's rule is true.
	ReasonHealthCheckInProgress Reason = "HealthCheckInProgress"
	// ReasonHealthCheckFailed means that the expression failed of a user's rule is true.
	ReasonHealthCheckFailed Reason = "HealthCheckFailed"
	// ReasonHealthCheckNotCurrent means that no expression of a user's rule is true.
	ReasonHealthCheckNotCurrent Reason = "HealthCheckNotCurrent"
	// ReasonHealthCheckError means that an expression of a user's rule fails on the object.
	ReasonHealthCheckError Reason = "HealthCheckError"
	// ReasonHealthCheckTooCostly means that an expression of a user's rule was cut off on the object, because it takes too long.
	ReasonHealthCheckTooCostly Reason = "HealthCheckTooCostly"

	// ReasonDisruptionTarget means that a Ready pod is about to be removed: evicted, preempted or taken off its node.
	ReasonDisruptionTarget Reason = "DisruptionTarget"
	// ReasonLastRunFailed means that the last run of a CronJob has not succeeded.
	ReasonLastRunFailed Reason = "LastRunFailed"
	// ReasonNotAccepted means that no controller accepts an object of the Gateway API.
	ReasonNotAccepted Reason = "NotAccepted"
	// ReasonVolumePending means that a PersistentVolume is not available yet.
	ReasonVolumePending Reason = "VolumePending"
	// ReasonVolumeFailed means that a PersistentVolume could not be reclaimed.
	ReasonVolumeFailed Reason = "VolumeFailed"
	// ReasonInsufficientPods means that fewer pods are healthy than a PodDisruptionBudget asks for.
	ReasonInsufficientPods Reason = "InsufficientPods"
	// ReasonNamesNotAccepted means that the names of a CustomResourceDefinition are taken.
	ReasonNamesNotAccepted Reason = "NamesNotAccepted"
	// ReasonAvailableFalse means that the object's condition Available is False.
	ReasonAvailableFalse Reason = "AvailableFalse"
	// ReasonConditionFalse means that the condition that tells of an object's health, other than Ready and Available, is False.
	ReasonConditionFalse Reason = "ConditionFalse"
	// ReasonConditionUnknown means that the condition that tells of an object's health, other than Ready, is neither True nor False.
	ReasonConditionUnknown Reason = "ConditionUnknown"
	// ReasonStaleCondition means that the condition that tells of an object's health speaks of an older spec.
	ReasonStaleCondition Reason = "StaleCondition"
	// ReasonDegraded means that the object's condition Degraded is True.
	ReasonDegraded Reason = "Degraded"
	// ReasonSyncedFalse means that the object's condition Synced is False, or Crossplane's LastAsyncOperation.
	ReasonSyncedFalse Reason = "SyncedFalse"
	// ReasonPhaseFailed means that the object's phase, state or health is a word for failure.
	ReasonPhaseFailed Reason = "PhaseFailed"
	// ReasonInvalidDeadline means that the annotation that gives the object its progress deadline holds no duration.
	ReasonInvalidDeadline Reason = "InvalidDeadline"
	// ReasonNotHealthy means that the object's own status says of it, or of a part of it, that it is not healthy, whatever its conditions and phase say.
	ReasonNotHealthy Reason = "NotHealthy"
	// ReasonNoStatus means that a custom resource has no status, or one that says nothing.
	ReasonNoStatus Reason = "NoStatus"
	// ReasonNoRule means that no rule can tell the health of a kind from its status.
	ReasonNoRule Reason = "NoRule"
)
