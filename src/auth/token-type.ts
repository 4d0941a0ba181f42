/** The `typ` of tokens that let somebody in (RFC 9068, 2.1): an identity token is no permission to call. */
export const TOKEN_TYPE = 'at+jwt';
