package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/healthscope/healthscope/healthscope/appcontext"
)

const (
	// groupPath is the path of a deployment intent group.
	groupPath = "/v2/projects/{project}/composite-apps/{app}/{version}/deployment-intent-groups/{group}"
	// maxBodyBytes is the maximum size of the body of a request, the same as that of a message to the gRPC services of rsync.
	maxBodyBytes = 16 << 10
)

// verbDeploy is the verb of the Access that changes to deployments need, the same as that of the gRPC services of rsync.
const verbDeploy = "deploy"

// Deployments deploys deployment intent groups. A method that returns nil has stored the request; it is carried out after that.
//
// The response to an error of one of the kinds of package appcontext is the same as for status documents. All other errors mean that the state
// of the group does not allow the request; the response is 409.
type Deployments interface {
	// Instantiate deploys a group to its clusters.
	Instantiate(ctx context.Context, group appcontext.DeploymentRef) error
	// Terminate deletes what was deployed.
	Terminate(ctx context.Context, group appcontext.DeploymentRef) error
	// Stop stops the operation on a group that is in progress.
	Stop(ctx context.Context, group appcontext.DeploymentRef) error
	// Update deploys the newest context of a group, and returns its new revision.
	Update(ctx context.Context, group appcontext.DeploymentRef) (Revision, error)
	// Rollback deploys the context of an earlier revision of a group.
	Rollback(ctx context.Context, group appcontext.DeploymentRef, to Revision) error
}

// Revision is the number of a revision of a group: 1 after instantiation, incremented by each update and rollback.
type Revision int64

// Rollback is the body of a request for a rollback.
type Rollback struct {
	// Metadata may contain a description. The server ignores it.
	Metadata map[string]any `json:"metadata,omitempty"`
	// Spec selects the revision.
	Spec RollbackSpec `json:"spec"`
}

// RollbackSpec selects the revision of a group for a rollback.
type RollbackSpec struct {
	// Revision is the number of the revision, from 1, as a string of decimal digits.
	Revision string `json:"revision" pattern:"^[1-9][0-9]{0,17}$"`
}

// deploymentRoutes returns EMCO's routes that change deployments.
func (h *handler) deploymentRoutes() []route {
	action := func(name, id, summary, description string, do responder) route {
		return route{
			Operation: Operation{Path: groupPath + "/" + name, Method: http.MethodPost, ID: id, Tag: tagDeployments, Summary: summary, Description: description},
			timeout:   documentTimeout, access: urlAccess(verbDeploy, "project", "app", "version", "group"), respond: do,
		}
	}
	update := action("update", "updateGroup", "Update a deployment intent group to its newest context",
		"The newest context replaces the context in force. The response is the number of the new revision of the group.", h.update)
	update.MediaTypes, update.Document = []string{typeJSON}, Revision(0)
	rollback := action("rollback", "rollbackGroup", "Roll a deployment intent group back to an earlier revision", "The rollback creates a new revision.", h.rollback)
	rollback.Body = Rollback{}
	return []route{
		action("instantiate", "instantiateGroup", "Deploy a deployment intent group to its clusters",
			"The newest context of the group is deployed. If it is deployed already, the resources that clusters have refused are tried again.", h.groupAction(Deployments.Instantiate)),
		action("terminate", "terminateGroup", "Delete a deployment intent group from its clusters", "An action that is running for the group ends.", h.groupAction(Deployments.Terminate)),
		action("stop", "stopGroup", "Stop the action that is running for a deployment intent group", "Resources that are applied stay. Nothing else is done until the next request for the group.", h.groupAction(Deployments.Stop)),
		update,
		rollback,
	}
}

// groupAction returns a responder for a request whose input is only its path. EMCO's clients may send a body, which is ignored.
func (h *handler) groupAction(do func(Deployments, context.Context, appcontext.DeploymentRef) error) responder {
	return func(ctx context.Context, r *http.Request, _ url.Values) (response, error) {
		if h.deployments == nil {
			return response{}, errDeploymentsDisabled
		}
		return response{}, deploymentError(do(h.deployments, ctx, groupOf(r)))
	}
}

func (h *handler) update(ctx context.Context, r *http.Request, _ url.Values) (response, error) {
	if h.deployments == nil {
		return response{}, errDeploymentsDisabled
	}
	revision, err := h.deployments.Update(ctx, groupOf(r))
	return response{document: revision}, deploymentError(err)
}

func (h *handler) rollback(ctx context.Context, r *http.Request, _ url.Values) (response, error) {
	if h.deployments == nil {
		return response{}, errDeploymentsDisabled
	}
	to, err := readRollback(r)
	if err != nil {
		return response{}, err
	}
	return response{}, deploymentError(h.deployments.Rollback(ctx, groupOf(r), to))
}

// readRollback reads the body of a request for a rollback.
func readRollback(r *http.Request) (Revision, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBodyBytes))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return 0, statusErrorf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", maxBodyBytes)
	}
	if err != nil {
		return 0, statusErrorf(http.StatusBadRequest, "cannot read the body: %w", err)
	}
	if len(body) == 0 {
		return 0, statusErrorf(http.StatusBadRequest, `the body is empty; it must be {"spec":{"revision":"<number>"}}`)
	}
	var rollback Rollback
	if err := json.Unmarshal(body, &rollback); err != nil {
		return 0, statusErrorf(http.StatusUnprocessableEntity, `cannot read the body, which must be {"spec":{"revision":"<number>"}}: %w`, err)
	}
	revision, err := strconv.ParseInt(rollback.Spec.Revision, 10, 64)
	if err != nil || revision < 1 {
		return 0, statusErrorf(http.StatusBadRequest, "spec.revision is %s; it must be the number of a revision, from 1, as text", quote(rollback.Spec.Revision))
	}
	return Revision(revision), nil
}

// groupOf returns the deployment intent group that a path names.
func groupOf(r *http.Request) appcontext.DeploymentRef {
	return appcontext.GroupRef(r.PathValue("project"), r.PathValue("app"), r.PathValue("version"), r.PathValue("group"))
}

// errDeploymentsDisabled is the error of requests that need rsync.
var errDeploymentsDisabled = statusErrorf(http.StatusNotImplemented, "%w: nothing is deployed here, because rsync.enabled is false in the server's configuration", errNotConfigured)

// deploymentError converts an error of Deployments to an error for the caller.
func deploymentError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, appcontext.ErrNotFound):
		return statusErrorf(http.StatusNotFound, "%w", err)
	case errors.Is(err, appcontext.ErrInvalid):
		return statusErrorf(http.StatusBadRequest, "%w", err)
	case errors.Is(err, appcontext.ErrMalformed):
		return statusErrorf(http.StatusInternalServerError, "%w", err)
	}
	for _, unavailable := range []error{appcontext.ErrUnavailable, appcontext.ErrDenied, appcontext.ErrNoSpace, appcontext.ErrClosed, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, unavailable) {
			return statusErrorf(http.StatusServiceUnavailable, "%w", err)
		}
	}
	return statusErrorf(http.StatusConflict, "%w", err)
}
