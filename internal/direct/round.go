package direct

// RoundUp is the smallest multiple of Align that is at least n.
func RoundUp[N int | int64](n N) N { return (n + Align - 1) / Align * Align }
