export const ENTITIES = [];
