package failure

import "regexp"

// hidden stands in messages for what they do not show.
const hidden = "…"

// secrets match what may be a secret in a URI, or in a text that holds one: user and password before the host, as they are and
// escaped in a parameter, and parameters whose names say that they hold one.
var secrets = []*regexp.Regexp{
	regexp.MustCompile(`(://)[^\s/?#@"']*:[^\s?#@"']*(@)`),
	regexp.MustCompile(`(://)[^\s/?#@"':]+(@)`),
	regexp.MustCompile(`((?i:%3A%2F%2F))[^\s&@"']*?((?i:%40))`),
	regexp.MustCompile(`([?&;](?i:[a-z0-9_.-]*(?:access[_-]?key|secret|token|passw|pwd|credential|signature|api[_-]?key)[a-z0-9_.-]*|sig)=)[^\s&;"']+()`),
}

// Redact returns a text without the passwords and keys of the URIs in it.
func Redact(text string) string {
	for _, s := range secrets {
		text = s.ReplaceAllString(text, "${1}"+hidden+"${2}")
	}
	return text
}
