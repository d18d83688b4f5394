// The fields of a form for the inputs of a task, from the JSON Schema of their shape. What is not a plain field is written as
// JSON. Pure.

export interface SchemaField {
  name: string;
  kind: "text" | "long" | "number" | "yes" | "choice" | "lines" | "numbers" | "json";
  description: string;
  required: boolean;
  choices: string[];
}

type Json = Record<string, unknown>;
const isObject = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns the fields of a schema of an object with properties; null for any other schema. */
export function schemaFields(schema: unknown): SchemaField[] | null {
  if (!isObject(schema) || !isObject(schema["properties"])) return null;
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(schema["properties"]).map(([name, value]) => {
    const one = isObject(value) ? value : {};
    const choices = Array.isArray(one["enum"]) && one["enum"].every((choice) => typeof choice === "string") ? (one["enum"] as string[]) : [];
    const description = typeof one["description"] === "string" ? one["description"] : "";
    return { name, kind: kindOf(one, choices), description, required: required.includes(name), choices };
  });
}

function kindOf(schema: Json, choices: string[]): SchemaField["kind"] {
  if (choices.length) return "choice";
  switch (schema["type"]) {
    case "string":
      return typeof schema["maxLength"] === "number" && schema["maxLength"] <= 200 ? "text" : "long";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "yes";
    case "array": {
      const items = isObject(schema["items"]) ? schema["items"]["type"] : undefined;
      return items === "string" ? "lines" : items === "number" || items === "integer" ? "numbers" : "json";
    }
    default:
      return "json";
  }
}

/** What the form holds: the text of each field, and the other inputs as JSON. */
export interface FilledFields {
  texts: Record<string, string>;
  others: string;
}

/** Fills the fields from inputs. A value that does not fit its field is kept as JSON beside them. */
export function fill(fields: SchemaField[], inputs: unknown): FilledFields {
  const texts: Record<string, string> = {};
  const others: Json = {};
  for (const [name, value] of Object.entries(isObject(inputs) ? inputs : {})) {
    const field = fields.find((one) => one.name === name);
    const text = field && textOf(field, value);
    if (text === undefined) others[name] = value;
    else texts[name] = text;
  }
  return { texts, others: Object.keys(others).length ? JSON.stringify(others, null, 2) : "" };
}

const isListOf = (value: unknown, kind: "string" | "number"): value is unknown[] => Array.isArray(value) && value.every((one) => typeof one === kind);

function textOf(field: SchemaField, value: unknown): string | undefined {
  switch (field.kind) {
    case "text":
    case "long":
      return typeof value === "string" ? value : undefined;
    case "choice":
      return typeof value === "string" && field.choices.includes(value) ? value : undefined;
    case "number":
      return typeof value === "number" ? String(value) : undefined;
    case "yes":
      return typeof value === "boolean" ? String(value) : undefined;
    case "lines":
      return isListOf(value, "string") && !value.some((one) => String(one).includes("\n")) ? value.join("\n") : undefined;
    case "numbers":
      return isListOf(value, "number") ? value.join("\n") : undefined;
    case "json":
      return JSON.stringify(value, null, 2);
  }
}

/** Reads the inputs back. Throws an error with the name of the field whose text is not a value. */
export function inputsOf(fields: SchemaField[], { texts, others }: FilledFields): Json {
  const inputs: Json = {};
  for (const field of fields) {
    const text = texts[field.name] ?? "";
    // An empty text is a value only where there has to be one.
    if (text === "" && !(field.required && (field.kind === "text" || field.kind === "long"))) continue;
    inputs[field.name] = valueOf(field, text);
  }
  const rest = readJson(others, "other inputs");
  if (rest === undefined) return inputs;
  if (!isObject(rest)) throw new Error("other inputs: an object is needed, as in {\"name\": 1}");
  return { ...inputs, ...rest };
}

function valueOf(field: SchemaField, text: string): unknown {
  switch (field.kind) {
    case "text":
    case "long":
    case "choice":
      return text;
    case "number":
      if (Number.isNaN(Number(text))) throw new Error(`${field.name}: a number is needed`);
      return Number(text);
    case "yes":
      return text === "true";
    case "lines":
      return text.split("\n").filter((line) => line.trim() !== "");
    case "numbers": {
      const found = text.split(/[\s,]+/).filter(Boolean).map(Number);
      if (found.some((one) => Number.isNaN(one))) throw new Error(`${field.name}: numbers are needed, one a line`);
      return found;
    }
    case "json":
      return readJson(text, field.name);
  }
}

/** Reads JSON; undefined for an empty text. Throws an error with the name of the field. */
export function readJson(text: string, name: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new Error(`${name}: this is not JSON; write for example ["a", "b"] or {"name": 1}`);
  }
}
