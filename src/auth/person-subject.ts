/** `sub` of a person: one line, as it stands in transitions after `person:`. */
export const PERSON_SUBJECT = /^[A-Za-z0-9][A-Za-z0-9._:@|+-]{0,127}$/;
