// Linked with the whole archive of one layer and its allowed dependencies only.
int main() { return 0; }
