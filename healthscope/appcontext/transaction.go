package appcontext

import (
	"cmp"
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// maxOperations is how many operations etcd takes in one transaction unless it is started with another --max-txn-ops.
	maxOperations = 128
	// requestOverhead and operationOverhead bound what a request and each operation in it take besides keys and values.
	requestOverhead   = 512
	operationOverhead = 64
)

// transaction is a set of operations that etcd performs together or not at all.
type transaction struct {
	conditions []condition
	compares   []clientv3.Cmp
	operations []clientv3.Op
	// size is that of all keys and values.
	size int
	// err is the first problem with an argument.
	err error
}

// condition is that a key exists, or does not. If it does not hold, the transaction fails with ErrNotFound or ErrExists.
type condition struct {
	key    string
	exists bool
}

// require adds the condition that a key exists. If it does not, the transaction fails with ErrNotFound.
func (t *transaction) require(key string) {
	t.conditions = append(t.conditions, condition{key, true})
	t.size += len(key) + operationOverhead // When it fails, etcd is asked which condition did not hold.
	t.compare(clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
}

// requireAbsent adds the condition that a key does not exist. If it does, the transaction fails with ErrExists.
func (t *transaction) requireAbsent(key string) {
	t.conditions = append(t.conditions, condition{key, false})
	t.size += len(key) + operationOverhead
	t.compare(clientv3.Compare(clientv3.CreateRevision(key), "=", 0))
}

// requireRevision adds the condition that a key was last written at a revision; 0 means that it does not exist. If it does not
// hold, the transaction fails with ErrConflict.
func (t *transaction) requireRevision(key string, revision int64) {
	t.compare(clientv3.Compare(clientv3.ModRevision(key), "=", revision))
}

func (t *transaction) compare(c clientv3.Cmp) {
	t.compares = append(t.compares, c)
	t.size += len(c.KeyBytes()) + operationOverhead
}

// put stores a value as EMCO does.
func (t *transaction) put(key string, value any) {
	data, err := encode(value)
	if len(key) > maxKeyBytes {
		err = fmt.Errorf("%w: key %.100q… has %d bytes, and may have %d", ErrTooLarge, key, len(key), maxKeyBytes)
	}
	t.err = cmp.Or(t.err, err)
	t.operations = append(t.operations, clientv3.OpPut(key, string(data)))
	t.size += len(key) + len(data) + operationOverhead
}

// remove deletes keys.
func (t *transaction) remove(keys ...string) {
	for _, key := range keys {
		t.operations = append(t.operations, clientv3.OpDelete(key))
		t.size += len(key) + operationOverhead
	}
}

// removeAll deletes all keys that begin with prefix, which ends with a slash: /context/1/ does not delete /context/10/.
func (t *transaction) removeAll(prefix string) {
	t.operations = append(t.operations, clientv3.OpDelete(prefix, clientv3.WithPrefix()))
	t.size += len(prefix) + operationOverhead
}

// check rejects a transaction that etcd would reject for its size.
func (t *transaction) check(limit int) error {
	if t.err != nil {
		return t.err
	}
	if len(t.operations) > maxOperations || len(t.compares) > maxOperations {
		return fmt.Errorf("%w: %d operations in one transaction, and there may be %d", ErrTooLarge, len(t.operations), maxOperations)
	}
	if size := t.size + requestOverhead; size > limit {
		key := ""
		for _, o := range t.operations {
			if len(key) == 0 && o.IsPut() {
				key = string(o.KeyBytes())
			}
		}
		return fmt.Errorf("%w: the value of %q makes a request of %d bytes, and it may have %d", ErrTooLarge, key, size, limit)
	}
	return nil
}

// commit writes the transaction. It fails with ErrNotFound or ErrExists, naming the key, when a condition does not hold,
// and with ErrConflict when another comparison does not.
func (s *Store) commit(ctx context.Context, t *transaction) error {
	if err := t.check(s.options.MaxRequestBytes); err != nil {
		return err
	}
	var reads []clientv3.Op
	for _, c := range t.conditions {
		reads = append(reads, clientv3.OpGet(c.key, clientv3.WithCountOnly()))
	}
	return s.call(ctx, func(ctx context.Context, client *clientv3.Client) error {
		response, err := client.Txn(ctx).If(t.compares...).Then(t.operations...).Else(reads...).Commit()
		if err != nil || response.Succeeded {
			return err
		}
		for i, c := range t.conditions {
			switch exists := response.Responses[i].GetResponseRange().Count > 0; {
			case c.exists && !exists:
				return keyError(ErrNotFound, c.key)
			case !c.exists && exists:
				return keyError(ErrExists, c.key)
			}
		}
		return ErrConflict
	})
}
