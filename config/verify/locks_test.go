package verify

import (
	"go/ast"
	"testing"
)

// TestNoLockIsThatOfAVariableThatChanges asserts that a function assigns no new value to a variable whose lock it takes. If the
// value changed between Lock and Unlock, Unlock would be called on another lock, which ends the program.
func TestNoLockIsThatOfAVariableThatChanges(t *testing.T) {
	t.Parallel()
	files := sources(t, "aai", "apis", "controllers", "e2e", "healthscope")
	locks := 0
	inspect(files, func(f *ast.FuncDecl) {
		if f.Body == nil {
			return
		}
		locked := lockedVariables(f.Body)
		locks += len(locked)
		for _, changed := range reassigned(f.Body) {
			if locked[changed] {
				t.Errorf("function %s gives %q another value and holds a lock of it: take the lock in a method of its own", f.Name.Name, changed)
			}
		}
	})
	if locks < 100 {
		t.Errorf("only %d functions hold a lock: this test looks in the wrong place", locks)
	}
}

// lockedVariables returns the variables whose locks are taken in a function.
func lockedVariables(body *ast.BlockStmt) map[string]bool {
	locked := map[string]bool{}
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if method, ok := call.Fun.(*ast.SelectorExpr); ok && (method.Sel.Name == "Lock" || method.Sel.Name == "RLock") {
			if variable := rootOf(method.X); variable != "" {
				locked[variable] = true
			}
		}
		return true
	})
	return locked
}

// rootOf returns the variable at the beginning of an expression such as a.b.c.
func rootOf(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return ""
		}
	}
}

// reassigned returns the variables to which a function assigns a new value.
func reassigned(body *ast.BlockStmt) []string {
	var names []string
	ast.Inspect(body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && a.Tok.String() == "=" {
			for _, left := range a.Lhs {
				if name, ok := left.(*ast.Ident); ok {
					names = append(names, name.Name)
				}
			}
		}
		return true
	})
	return names
}
