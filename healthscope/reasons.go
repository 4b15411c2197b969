package healthscope

// Reason says in one CamelCase word why an object is in its state. Reasons made
// by this project are the constants below; reasons that Kubernetes itself gives,
// such as CrashLoopBackOff or Evicted, are passed on as they are.
type Reason string

// Reasons that several rules, or Judge, give.
const (
	// ReasonNotObserved means that the controller of the object has not written a status yet, or that no monitor has.
	ReasonNotObserved Reason = "NotObserved"
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
	// ReasonSuspended means that a Job is suspended.
	ReasonSuspended Reason = "Suspended"
	// ReasonPodFailed means that a pod has failed without saying why.
	ReasonPodFailed Reason = "PodFailed"
	// ReasonLoadBalancerPending means that a Service of type LoadBalancer has no address yet.
	ReasonLoadBalancerPending Reason = "LoadBalancerPending"
	// ReasonNoAddress means that no ingress controller has given an Ingress an address.
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
	// ReasonUnknownCluster means that a reference leads to a cluster that is not known.
	ReasonUnknownCluster Reason = "UnknownCluster"
	// ReasonNotSynced means that the objects of the kind have not been read yet.
	ReasonNotSynced Reason = "NotSynced"
	// ReasonMalformedBundle means that parts of a bundle cannot be read.
	ReasonMalformedBundle Reason = "MalformedBundle"
)
