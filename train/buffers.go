package train

// readAhead is the number of buffers of a stream: one is filled while another
// is used.
const readAhead = 2

// upTo makes n buffers, or as many as the budget has room for, but one at least.
func upTo[T any](n int, buffer func() (T, error)) (all []T, err error) {
	for range n {
		x, err := buffer()
		if err != nil && len(all) == 0 {
			return nil, err
		}
		if err != nil {
			break
		}
		all = append(all, x)
	}
	return all, nil
}
