/** Parameters in Stripe's form encoding: a text, or named texts in brackets. */
export type FormValue = string | Readonly<Record<string, string>>;
export type Form = Readonly<Record<string, FormValue>>;

/**
 * Reads `amount=100&metadata[payment_id]=pay_1&created[gte]=5`, one level of brackets deep.
 * @returns null when a name is neither plain nor one level deep, or comes twice.
 */
export function readForm(text: string): Form | null {
  const form = new Map<string, FormValue>();
  for (const [name, value] of new URLSearchParams(text)) {
    const [, outer, inner] = /^(\w{1,64})(?:\[(\w{0,64})\])?$/.exec(name) ?? [];
    if (outer === undefined) return null;
    const before = form.get(outer);
    if (inner === undefined) {
      if (before !== undefined) return null;
      form.set(outer, value);
      continue;
    }
    if (typeof before === 'string') return null;
    const at = inner === '' ? String(Object.keys(before ?? {}).length) : inner;
    if (before && Object.hasOwn(before, at)) return null;
    form.set(outer, { ...before, [at]: value });
  }
  return Object.fromEntries([...form].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The text of a plain parameter; null: absent or in brackets. */
export function textOf(form: Form, name: string): string | null {
  const value = Object.hasOwn(form, name) ? form[name] : undefined;
  return typeof value === 'string' ? value : null;
}

/** The texts in brackets under a name; empty: none. */
export function textsOf(form: Form, name: string): Readonly<Record<string, string>> {
  const value = Object.hasOwn(form, name) ? form[name] : undefined;
  return typeof value === 'object' ? value : {};
}
