package appcontext

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// sentinelError is an error that callers detect with errors.Is.
type sentinelError string

func (e sentinelError) Error() string { return string(e) }

// The kinds of errors, for errors.Is. The texts of ErrNotFound, ErrExists and ErrClosed are those of EMCO's library, whose
// users search messages for them. All others are our own.
const (
	// ErrNotFound says that a context, or something in one, is not there.
	ErrNotFound sentinelError = "Key doesn't exist"
	// ErrExists says that what was to be made is there already. Nothing has been changed.
	ErrExists sentinelError = "Key exists"
	// ErrInvalid says that an argument cannot be used. The message names it.
	ErrInvalid sentinelError = "Not valid"
	// ErrTooLarge says that etcd would not take a key or a request, for its size. Nothing has been sent.
	ErrTooLarge sentinelError = "Too large for etcd"
	// ErrMalformed says that a stored value is not what its key promises.
	ErrMalformed sentinelError = "Stored value cannot be read"
	// ErrUnavailable says that etcd did not answer in time, or has no leader. A write may have happened nevertheless.
	ErrUnavailable sentinelError = "Etcd is not available"
	// ErrDenied says that etcd refuses user, password, certificate or access to a key.
	ErrDenied sentinelError = "Etcd denies access"
	// ErrNoSpace says that etcd's storage is full: it takes no writes until it is compacted and defragmented.
	ErrNoSpace sentinelError = "Etcd has no space left"
	// ErrClosed says that the Store is closed.
	ErrClosed sentinelError = "Etcd Client not initialized"
	// ErrConflict says that what the caller has read before has changed meanwhile. Nothing has been written.
	ErrConflict sentinelError = "changed meanwhile"

	// errCompacted says that etcd has forgotten the revision that was asked for.
	errCompacted sentinelError = "revision is compacted"
	// errNoProgress says that etcd no longer answers requests for the progress of a watch.
	errNoProgress sentinelError = "etcd does not report the progress of the watch"
)

// The prefixes of errors, which say which operation failed.
const (
	opAddInstruction = "cannot add instruction"
	opAddLevel       = "cannot add level"
	opDelete         = "cannot delete"
	opFindAll        = "cannot find contexts"
	opList           = "cannot list"
	opMeta           = "cannot read meta data"
	opReadBundle     = "cannot read bundle"
	opSnapshot       = "cannot read context"
	opUpdate         = "cannot update value"
	opValue          = "cannot read value"
)

// wrap prefixes an error with the operation that failed. It returns nil for a nil error.
func wrap(operation string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", operation, err)
}

// keyError adds a key to an error.
func keyError(kind error, key string) error {
	return fmt.Errorf("%w: %q", kind, key)
}

// invalidError refuses an argument.
type invalidError struct {
	// argument names the argument, value is its value, and reason says what is wrong with it.
	argument, value, reason string
}

func (e *invalidError) Error() string {
	return fmt.Sprintf("cannot use %s %q: it %s", e.argument, e.value, e.reason)
}

// Is makes every invalidError an ErrInvalid.
func (e *invalidError) Is(target error) bool { return target == ErrInvalid }

// translate turns an error of etcd's client into one of this package. ctx is the caller's, without the deadline of the call.
func translate(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if kind := kindOf(err); kind != nil && !errors.Is(err, kind) {
		return fmt.Errorf("%w: %w", kind, err)
	}
	return err
}

// kindOf returns the sentinel for an error of etcd's client, or nil.
func kindOf(err error) error {
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return errCompacted
	case errors.Is(err, rpctypes.ErrNoSpace):
		return ErrNoSpace
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return ErrTooLarge
	case errors.Is(err, rpctypes.ErrAuthFailed), errors.Is(err, rpctypes.ErrUserEmpty):
		return ErrDenied
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, rpctypes.ErrTooManyRequests):
		return ErrUnavailable
	}
	switch codeOf(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled: // The last is of a connection that was dropped.
		return ErrUnavailable
	case codes.PermissionDenied, codes.Unauthenticated:
		return ErrDenied
	default:
		return nil
	}
}

func codeOf(err error) codes.Code {
	if e, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		return e.Code()
	}
	return status.Code(err)
}
