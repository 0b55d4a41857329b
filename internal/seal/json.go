package seal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
)

// Unsealed is the value of the field "seal" of a struct before [EncodeJSON] has
// replaced it by the sum.
const Unsealed = "crc32c:00000000"

// The field stands at the top of the text, so that no string in it is taken for it.
var sealField = regexp.MustCompile(`^\{\s*"seal":\s*"crc32c:([0-9a-f]{8})"`)

// EncodeJSON returns v as indented JSON. Its first field must be a string that is
// called "seal" and holds [Unsealed]: the text has there the CRC-32C of itself, of
// the text with Unsealed in that place. It ends with a newline.
func EncodeJSON(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	text = append(text, '\n')
	at := sealField.FindSubmatchIndex(text)
	if at == nil || string(text[at[2]:at[3]]) != Unsealed[len("crc32c:"):] {
		return nil, fmt.Errorf("%T has no field \"seal\" at its front", v)
	}
	copy(text[at[2]:at[3]], fmt.Sprintf("%08x", crc32.Checksum(text, Castagnoli)))
	return text, nil
}

// DecodeJSON checks the sum of what [EncodeJSON] wrote, and only then decodes it into
// v. The error says what is wrong with the text; the caller names the file. The field
// "seal" of v holds the sum afterwards.
func DecodeJSON(text []byte, v any) error {
	at := sealField.FindSubmatchIndex(text)
	if at == nil {
		return errors.New("it has no seal")
	}
	zeroed := bytes.Clone(text)
	copy(zeroed[at[2]:at[3]], Unsealed[len("crc32c:"):])
	if got, want := fmt.Sprintf("%08x", crc32.Checksum(zeroed, Castagnoli)), string(text[at[2]:at[3]]); got != want {
		return fmt.Errorf("its sum is crc32c:%s, its seal says crc32c:%s", got, want)
	}
	return json.Unmarshal(text, v)
}
