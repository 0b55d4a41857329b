//go:build hooks

package ndls

import "ndls/internal/hook"

func init() { ReservedVariables = append(ReservedVariables, hook.Variable) }
