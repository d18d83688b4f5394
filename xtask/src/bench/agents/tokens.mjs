// Counts the tokens of texts: JSON strings in an array on standard input, numbers in an array on standard output.
import { readFileSync } from "node:fs";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

const texts = JSON.parse(readFileSync(0, "utf8"));
// Words that steer a model are plain text here.
const plain = { allowedSpecial: new Set(), disallowedSpecial: new Set() };
console.log(JSON.stringify(texts.map((text) => encode(text, plain).length)));
