package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
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

// deploymentRoutes returns EMCO's routes that change deployments. EMCO's clients may send a body with any of them; only a rollback reads it.
func (h *handler) deploymentRoutes() []route {
	action := func(name, id, summary, description string, do func(context.Context, *requestInfo) (any, error)) route {
		return route{
			Operation: Operation{Path: groupPath + "/" + name, Method: http.MethodPost, ID: id, Tag: tagDeployments, Summary: summary, Description: description},
			timeout:   documentTimeout, read: readPath(verbDeploy, "project", "app", "version", "group"),
			respond: func(ctx context.Context, q *requestInfo) (response, error) {
				if h.Deployments == nil {
					return response{}, statusErrorf(http.StatusNotImplemented, "%w: nothing is deployed here, because rsync.enabled is false in the server's configuration", errNotConfigured)
				}
				document, err := do(ctx, q)
				return response{document: document}, deploymentError(err)
			},
		}
	}
	updates := action("update", "updateGroup", "Update a deployment intent group to its newest context",
		"The newest context replaces the context in force. The response is the number of the new revision of the group.",
		func(ctx context.Context, q *requestInfo) (any, error) { return h.Deployments.Update(ctx, groupOf(q)) })
	updates.MediaTypes, updates.Document = []string{typeJSON}, Revision(0)
	rollbacks := action("rollback", "rollbackGroup", "Roll a deployment intent group back to an earlier revision", "The rollback creates a new revision.",
		func(ctx context.Context, q *requestInfo) (any, error) {
			to, err := readRollback(q)
			if err != nil {
				return nil, err
			}
			return nil, h.Deployments.Rollback(ctx, groupOf(q), to)
		})
	rollbacks.Body = Rollback{}
	return []route{
		action("instantiate", "instantiateGroup", "Deploy a deployment intent group to its clusters",
			"The newest context of the group is deployed. If it is deployed already, the resources that clusters have refused are tried again.",
			func(ctx context.Context, q *requestInfo) (any, error) {
				return nil, h.Deployments.Instantiate(ctx, groupOf(q))
			}),
		action("terminate", "terminateGroup", "Delete a deployment intent group from its clusters", "An action that is running for the group ends.",
			func(ctx context.Context, q *requestInfo) (any, error) {
				return nil, h.Deployments.Terminate(ctx, groupOf(q))
			}),
		action("stop", "stopGroup", "Stop the action that is running for a deployment intent group", "Resources that are applied stay. Nothing else is done until the next request for the group.",
			func(ctx context.Context, q *requestInfo) (any, error) {
				return nil, h.Deployments.Stop(ctx, groupOf(q))
			}),
		updates,
		rollbacks,
	}
}

// readRollback reads the body of a request for a rollback.
func readRollback(q *requestInfo) (Revision, error) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, q.Body, maxBodyBytes))
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
func groupOf(q *requestInfo) appcontext.DeploymentRef {
	return appcontext.GroupRef(q.PathValue("project"), q.PathValue("app"), q.PathValue("version"), q.PathValue("group"))
}

// deploymentError converts an error of Deployments to an error for the caller. It returns one that is for the caller already unchanged.
func deploymentError(err error) error {
	if _, ok := errors.AsType[*statusError](err); err == nil || ok {
		return err
	}
	return statusErrorf(cmp.Or(statusOf(err), http.StatusConflict), "%w", err)
}

// statusOf returns the status code for an error of one of the kinds of package appcontext, or of a context; 0 for other errors.
func statusOf(err error) int {
	is := func(target error) bool { return errors.Is(err, target) }
	switch {
	case is(appcontext.ErrNotFound):
		return http.StatusNotFound
	case is(appcontext.ErrInvalid):
		return http.StatusBadRequest
	case is(appcontext.ErrMalformed):
		return http.StatusInternalServerError
	case is(appcontext.ErrUnavailable), is(appcontext.ErrDenied), is(appcontext.ErrNoSpace), is(appcontext.ErrClosed), is(context.DeadlineExceeded), is(context.Canceled):
		return http.StatusServiceUnavailable
	}
	return 0
}
